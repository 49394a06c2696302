"""Rights of functions on queues, database users and secrets. A wrong grant fails by its name."""

from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.adapters.database import Role
from hooksaga.aws.deployment import ENVIRONMENTS
from tests.infra.deployment import Deployment

READERS = {
    "intake": {"intake"},
    "intake-redrive": set(),
    "routing": {"router"},
    "orchestration": {"orchestrator"},
    "delivery": {"delivery"},
    "delivery-slow": {"delivery"},
    "dead-tasks": set(),
    "routing-redrive": set(),
    "orchestration-redrive": set(),
    "delivery-redrive": set(),
    "delivery-slow-redrive": set(),
}
SENDERS = {
    "intake-redrive": {"intake"},
    "routing": {"ingest", "intake", "health_monitor", "console"},
    "orchestration": {"router", "orchestrator", "delivery", "admin", "subscriptions", "console"},
    "delivery": {"orchestrator"},
    "delivery-slow": {"orchestrator"},
    "dead-tasks": {"orchestrator"},
}
LOGINS = {
    Role.INGEST: {"ingest", "intake", "console"},
    Role.ROUTER: {"router"},
    Role.ORCHESTRATOR: {"orchestrator"},
    Role.DELIVERY: {"delivery"},
    Role.LEASE_CLEANER: {"lease_cleaner"},
    Role.HEALTH_MONITOR: {"health_monitor"},
    Role.RETENTION: {"retention"},
    Role.SUBSCRIPTIONS: {"subscriptions", "console"},
    Role.ADMIN: {"admin", "console"},
    Role.OWNER: {"migrate"},
}
EVERYWHERE = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}
"""The only actions that may name every resource: AWS has no narrower one for them."""


def queue_arn(deployment: Deployment, name: str) -> str:
    return f"{deployment.queue(name)}.Arn"


def user_arn(deployment: Deployment, role: Role) -> str:
    """Return the ARN for the proxy if there is one, otherwise and for the owner for the database."""
    proxies = list(deployment.of_type("AWS::RDS::DBProxy"))
    ((instance, owner),) = (
        (name, one["Properties"]["MasterUsername"])
        for name, one in deployment.of_type("AWS::RDS::DBInstance").items()
    )
    through_proxy = proxies and role is not Role.OWNER
    database = f"{proxies[0]}.DBProxyArn(:6)" if through_proxy else f"{instance}.DbiResourceId"
    user = owner if role is Role.OWNER else role
    return f"arn:AWS::Partition:rds-db:AWS::Region:AWS::AccountId:dbuser:{database}/{user}"


def owner_secret(deployment: Deployment) -> str:
    return f"{next(iter(deployment.of_type('AWS::RDS::DBInstance')))}.MasterUserSecret.SecretArn"


def key_secret(deployment: Deployment) -> str:
    name = next(iter(deployment.of_type("AWS::SecretsManager::Secret").values()))["Properties"]["Name"]
    return f"arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:{name}-Ab12Cd"


@pytest.mark.parametrize("queue", READERS)
def test_only_its_function_may_read_a_queue(anywhere: Deployment, queue: str) -> None:
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"):
        assert anywhere.who_may(action, queue_arn(anywhere, queue)) == READERS[queue]


@pytest.mark.parametrize("queue", READERS)
def test_only_its_senders_may_send_to_a_queue(anywhere: Deployment, queue: str) -> None:
    assert anywhere.who_may("sqs:SendMessage", queue_arn(anywhere, queue)) == SENDERS.get(queue, set())


def test_rules_and_topics_of_this_account_may_send_to_the_intake_and_to_no_other_queue(
    anywhere: Deployment,
) -> None:
    allowed = {}
    for policy in anywhere.of_type("AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement["Effect"] == "Allow":
                (queue,) = policy["Properties"]["Queues"]
                assert anywhere.text(queue) == anywhere.queue("intake")
                assert anywhere.text(statement["Resource"]) == queue_arn(anywhere, "intake")
                assert statement["Action"] == "sqs:SendMessage"
                source = statement["Condition"]["ArnLike"]["aws:SourceArn"]
                allowed[statement["Principal"]["Service"]] = anywhere.text(source)
    assert allowed == {
        "events.amazonaws.com": "arn:AWS::Partition:events:*:AWS::AccountId:rule/*",
        "sns.amazonaws.com": "arn:AWS::Partition:sns:*:AWS::AccountId:*",
    }


@pytest.mark.parametrize("role", LOGINS)
def test_each_function_logs_in_as_its_own_users_only(dev: Deployment, role: Role) -> None:
    assert dev.who_may("rds-db:connect", user_arn(dev, role)) == LOGINS[role]


@pytest.mark.parametrize("role", LOGINS)
def test_so_it_does_through_the_proxy(with_proxy: Deployment, role: Role) -> None:
    assert with_proxy.who_may("rds-db:connect", user_arn(with_proxy, role)) == LOGINS[role]


def test_the_proxy_alone_logs_in_to_the_database_behind_it(with_proxy: Deployment) -> None:
    database = next(iter(with_proxy.of_type("AWS::RDS::DBInstance")))
    direct = (
        f"arn:AWS::Partition:rds-db:AWS::Region:AWS::AccountId:dbuser:{database}.DbiResourceId/{Role.INGEST}"
    )
    (who,) = with_proxy.who_may("rds-db:connect", direct)
    trusted = with_proxy.resources[who]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Principal"]["Service"] for one in trusted] == ["rds.amazonaws.com"]


def test_migrate_logs_in_without_the_proxy(on_aws: Deployment) -> None:
    (instance,) = on_aws.of_type("AWS::RDS::DBInstance")
    environment = on_aws.environment("migrate")
    assert environment["HOOKSAGA_DATABASE_HOST"] == f"{instance}.Endpoint.Address"
    assert environment["HOOKSAGA_DATABASE_SECRET_ARN"] == owner_secret(on_aws)


def test_only_migrate_may_read_the_owners_password(on_aws: Deployment) -> None:
    assert on_aws.who_may("secretsmanager:GetSecretValue", owner_secret(on_aws)) == {"migrate"}


def test_only_who_signs_or_seals_may_read_the_secrets_key(anywhere: Deployment) -> None:
    may = anywhere.who_may("secretsmanager:GetSecretValue", key_secret(anywhere))
    assert may == {"delivery", "subscriptions", "console"}


def test_nobody_may_do_everything(anywhere: Deployment) -> None:
    """No action with a wildcard, and no resource with one but where AWS has nothing narrower."""
    statements = list(anywhere.statements())
    assert len(statements) > len(anywhere.functions)
    for who, statement in statements:
        actions, resources = listed(statement["Action"]), listed(statement["Resource"])
        assert not [action for action in actions if "*" in action], who
        if "*" in resources:
            assert set(actions) <= EVERYWHERE or is_the_nat_instance(who), who


def is_the_nat_instance(who: str) -> bool:
    return "NatInstance" in who


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_a_functions_own_code_may_not_touch_the_network(on_aws: Deployment) -> None:
    """Lambda needs those rights to place it; what runs inside is denied them by name."""
    denied = {who for who, statement in on_aws.statements() if statement["Effect"] == "Deny"}
    assert denied == set(on_aws.functions)


@pytest.mark.parametrize(
    "function",
    [
        "ingest",
        "intake",
        "router",
        "orchestrator",
        "delivery",
        "lease_cleaner",
        "health_monitor",
        "retention",
        "subscriptions",
        "admin",
        "console",
    ],
)
def test_a_function_knows_the_addresses_of_the_queues_it_sends_to(
    anywhere: Deployment, function: str
) -> None:
    known = {name for name in anywhere.environment(function) if name.endswith("_QUEUE_URL")}
    sends = {queue for queue, senders in SENDERS.items() if function in senders}
    assert known == {f"HOOKSAGA_{queue.upper().replace('-', '_')}_QUEUE_URL" for queue in sends}


def test_no_function_is_told_a_password(on_aws: Deployment) -> None:
    assert "migrate" in on_aws.functions
    for function in on_aws.functions:
        names = set(on_aws.environment(function))
        assert not names & {"HOOKSAGA_DATABASE_URL", "HOOKSAGA_SECRETS_KEY", "HOOKSAGA_API_KEY"}
        assert ("HOOKSAGA_DATABASE_SECRET_ARN" in names) == (function == "migrate")


def test_only_lambda_may_act_as_a_function(anywhere: Deployment) -> None:
    assert anywhere.functions
    for function in anywhere.functions.values():
        role = anywhere.resources[anywhere.text(function["Role"]).split(".")[0]]
        statements = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert [one["Principal"] for one in statements] == [{"Service": "lambda.amazonaws.com"}]


def test_only_the_api_and_the_clock_may_start_functions(anywhere: Deployment) -> None:
    callers: dict[str, set[str]] = {}
    for one in anywhere.of_type("AWS::Lambda::Permission").values():
        function = anywhere.text(one["Properties"]["FunctionName"]).split(".")[0]
        name = anywhere.resources[function]["Properties"]["FunctionName"].split("-", 2)[2]
        callers.setdefault(name, set()).add(one["Properties"]["Principal"])
    clock, gateway = {"events.amazonaws.com"}, {"apigateway.amazonaws.com"}
    assert callers == {
        **dict.fromkeys(("router", "orchestrator", "lease_cleaner", "health_monitor", "retention"), clock),
        **dict.fromkeys(("ingest", "subscriptions", "console"), gateway),
        "admin": clock | gateway,
    }


def test_every_environment_is_looked_at() -> None:
    assert set(ENVIRONMENTS) == {"dev", "prod"}
