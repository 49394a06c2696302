"""Each assertion of this folder, held against a deployment in which the thing it guards is broken."""

from collections.abc import Callable

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from tests.infra import test_api_and_migration as api
from tests.infra import test_invocations as invocations
from tests.infra import test_network as network
from tests.infra import test_numbers as numbers
from tests.infra import test_observability as observability
from tests.infra import test_rights as rights
from tests.infra.deployment import Deployment
from tests.infra.network_view import group

Break = Callable[[Deployment], None]


def allow(function: str, action: str, resource: object) -> Break:
    """Gives a function a right that it has not."""

    def broken(deployment: Deployment) -> None:
        role = deployment.functions[function]["Role"]["Fn::GetAtt"][0]
        deployment.resources["TooMuch"] = {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "Roles": [{"Ref": role}],
                "PolicyDocument": {
                    "Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]
                },
            },
        }

    return broken


def forget(action: str) -> Break:
    """Takes an action out of every policy."""

    def broken(deployment: Deployment) -> None:
        for policy in deployment.of_type("AWS::IAM::Policy").values():
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                actions = rights.listed(statement["Action"])
                statement["Action"] = [one for one in actions if one != action]

    return broken


def change(function: str, **properties: object) -> Break:
    return lambda deployment: deployment.functions[function].update(properties)


def change_queue(queue: str, **properties: object) -> Break:
    return lambda deployment: deployment.resources[deployment.queue(queue)]["Properties"].update(properties)


def let_out(name: str, port: int) -> Break:
    """Opens a port of a security group to the internet."""

    def broken(deployment: Deployment) -> None:
        rules = deployment.resources[group(deployment, name)]["Properties"]["SecurityGroupEgress"]
        rules.append({"CidrIp": "0.0.0.0/0", "FromPort": port, "ToPort": port})

    return broken


def move_outside(function: str) -> Break:
    """Puts a function into the subnets that have a way out."""
    return lambda deployment: deployment.functions[function]["VpcConfig"].update(
        SubnetIds=deployment.functions["delivery"]["VpcConfig"]["SubnetIds"]
    )


def run_at_once(deployment: Deployment) -> None:
    """Lets a function change before the migration."""
    for one in deployment.of_type("AWS::Lambda::Function").values():
        if "router" in one["Properties"].get("Handler", ""):
            one["DependsOn"] = []


def close_the_topic(deployment: Deployment) -> None:
    """Leaves only what refuses plain HTTP in the topic's policy."""
    (policy,) = deployment.of_type("AWS::SNS::TopicPolicy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    statements[:] = [one for one in statements if one["Effect"] == "Deny"]


def let_any_account_publish(deployment: Deployment) -> None:
    (policy,) = deployment.of_type("AWS::SNS::TopicPolicy").values()
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        if statement["Effect"] == "Allow":
            statement["Condition"] = {"StringEquals": {"aws:SourceAccount": "123456789012"}}


def install_once(deployment: Deployment) -> None:
    (instance,) = deployment.of_type("AWS::EC2::Instance").values()
    steps = network.user_data(deployment)
    once = ["yum install iptables-services -y" if step.startswith("until") else step for step in steps]
    instance["Properties"]["UserData"] = {"Fn::Base64": "\n".join(once)}


def try_ticks_again(deployment: Deployment) -> None:
    deployment.resources.pop(next(iter(deployment.of_type("AWS::Lambda::EventInvokeConfig"))))


def drop_a_method(deployment: Deployment) -> None:
    del deployment.resources[next(iter(deployment.of_type("AWS::ApiGateway::Method")))]


BROKEN: list[tuple[str, Break, Callable[[Deployment], None]]] = [
    (
        "lease_cleaner reads deliveries",
        lambda one: allow(
            "lease_cleaner", "sqs:ReceiveMessage", {"Fn::GetAtt": [one.queue("delivery"), "Arn"]}
        )(one),
        lambda one: rights.test_only_its_function_may_read_a_queue(one, "delivery"),
    ),
    (
        "ingest may use every queue",
        allow("ingest", "sqs:*", "*"),
        lambda one: rights.test_only_its_senders_may_send_to_a_queue(one, "delivery"),
    ),
    (
        "router cannot delete what it has read",
        forget("sqs:DeleteMessage"),
        lambda one: rights.test_only_its_function_may_read_a_queue(one, "routing"),
    ),
    (
        "nobody may send",
        forget("sqs:SendMessage"),
        lambda one: rights.test_only_its_senders_may_send_to_a_queue(one, "routing"),
    ),
    (
        "delivery logs in as the orchestrator",
        lambda one: allow("delivery", "rds-db:connect", rights.user_arn(one, rights.Role.ORCHESTRATOR))(one),
        lambda one: rights.test_each_function_logs_in_as_its_own_users_only(one, rights.Role.ORCHESTRATOR),
    ),
    (
        "nobody can log in",
        forget("rds-db:connect"),
        lambda one: rights.test_each_function_logs_in_as_its_own_users_only(one, rights.Role.INGEST),
    ),
    (
        "admin reads the owner's password",
        lambda one: allow("admin", "secretsmanager:GetSecretValue", rights.owner_secret(one))(one),
        rights.test_only_migrate_may_read_the_owners_password,
    ),
    (
        "admin reads the key of signing secrets",
        lambda one: allow("admin", "secretsmanager:GetSecretValue", rights.key_secret(one))(one),
        rights.test_only_who_signs_or_seals_may_read_the_secrets_key,
    ),
    ("admin may do everything", allow("admin", "s3:*", "*"), rights.test_nobody_may_do_everything),
    (
        "ingest is told the database's URL",
        lambda one: one.functions["ingest"]["Environment"]["Variables"].update(HOOKSAGA_DATABASE_URL="x"),
        rights.test_no_function_is_told_a_password,
    ),
    (
        "router may call out",
        let_out("Inside", 443),
        network.test_only_callers_of_receivers_reach_the_internet_and_on_443,
    ),
    (
        "delivery may call any port",
        let_out("Outbound", 25),
        network.test_only_callers_of_receivers_reach_the_internet_and_on_443,
    ),
    ("admin has a way out", move_outside("admin"), network.test_the_others_have_no_route_out_at_all),
    (
        "a message comes back too early",
        change_queue("delivery", VisibilityTimeout=60),
        numbers.test_delivery_has_time_for_a_post_and_less_than_its_lease,
    ),
    (
        "router outlives its messages",
        change("router", Timeout=55),
        lambda one: numbers.test_a_message_comes_back_after_six_function_timeouts(one, "routing"),
    ),
    (
        "delivery outlives its lease",
        change("delivery", Timeout=61),
        numbers.test_delivery_has_time_for_a_post_and_less_than_its_lease,
    ),
    (
        "delivery has few copies of its own",
        change("delivery", ReservedConcurrentExecutions=1),
        numbers.test_no_function_with_a_queue_has_reserved_copies,
    ),
    (
        "what was given up is gone in a day",
        change_queue("delivery-redrive", MessageRetentionPeriod=86400),
        numbers.test_what_was_given_up_is_kept_for_two_weeks,
    ),
    ("router does not wait for the migration", run_at_once, api.test_every_function_waits_for_the_migration),
    (
        "no alarm reaches the topic",
        close_the_topic,
        observability.test_alarms_of_this_account_may_tell_the_topic_and_nobody_over_plain_http,
    ),
    (
        "another account's alarms reach the topic",
        let_any_account_publish,
        observability.test_alarms_of_this_account_may_tell_the_topic_and_nobody_over_plain_http,
    ),
    (
        "the nat instance installs once",
        install_once,
        network.test_the_nat_instance_has_memory_before_it_installs_and_does_not_give_up,
    ),
    (
        "Lambda stops the delivery that is retried often",
        change("delivery", RecursiveLoop="Terminate"),
        invocations.test_only_what_its_own_messages_come_back_to_may_run_in_a_loop,
    ),
    ("a tick is tried again", try_ticks_again, invocations.test_a_tick_that_failed_is_not_tried_again),
    ("a route is missing", drop_a_method, api.test_every_route_of_the_application_is_in_the_gateway),
]


@pytest.mark.parametrize(("broken", "assertion"), [pytest.param(*rest, id=name) for name, *rest in BROKEN])
def test_the_assertion_fails(dev: Deployment, broken: Break, assertion: Callable[[Deployment], None]) -> None:
    deployment = dev.copy()
    assertion(deployment)
    broken(deployment)
    with pytest.raises(AssertionError):
        assertion(deployment)
