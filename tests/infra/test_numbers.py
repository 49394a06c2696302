"""http timeout < function timeout < lease < visibility timeout, and connections within the database's limit."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from hooksaga.aws.deployment import (
    ENVIRONMENTS,
    LOCAL,
    SETTINGS,
    DatabaseSettings,
    Environment,
    FunctionLimits,
    InvalidDeployment,
    Nat,
    local_environment,
)
from hooksaga.aws.latency import LEVELS, Latency, longest_gathering_seconds
from hooksaga.core.flow import FIRST_LIMIT
from hooksaga.cost.capacity import connections_of
from hooksaga.cost.sources import read_prices
from hooksaga.local.sqs.function_table import function_kinds
from hooksaga.runtime.settings import InvalidSettings, Settings
from tests.infra.deployment import Deployment

DEV = ENVIRONMENTS["dev"]
WORK = {
    "intake": "intake",
    "routing": "router",
    "orchestration": "orchestrator",
    "delivery": "delivery",
    "delivery-slow": "delivery",
}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"delivery": FunctionLimits(35, 10)}, "longest POST"),
        ({"lease_seconds": 45}, "lease_seconds"),
        ({"redispatch_seconds": 270}, "redispatch_seconds"),
        ({"http_timeout_seconds": 41}, "HOOKSAGA_HTTP_TIMEOUT_SECONDS"),
        ({"ingest": FunctionLimits(29, 1)}, "the gateway's timeout"),
        ({"router": FunctionLimits(60, 4)}, "a minute"),
        ({"slow_concurrency": 1}, "slow_concurrency"),
        ({"slow_concurrency": 19}, "without slow_concurrency"),
        ({"intake": FunctionLimits(30, 1)}, "intake's concurrency"),
        ({"intake_receives": 1001}, "intake_receives"),
        ({"intake_tenant": "no blanks"}, "HOOKSAGA_INTAKE_TENANT"),
        ({"intake_attributes": "country"}, "HOOKSAGA_INTAKE_ATTRIBUTES"),
        ({"ingest": FunctionLimits(15, 100, connections=2)}, "connections"),
        ({"database": DatabaseSettings(connection_limit=70)}, "connections"),
        ({"endpoint_zones": 3}, "endpoint_zones"),
        ({"nat": Nat.GATEWAY, "nat_zones": 3}, "nat_zones"),
        ({"nat_zones": 2}, "a NAT instance serves all zones"),
        ({"egress_allow": ("10.0.0.0/33",)}, "HOOKSAGA_EGRESS_ALLOW"),
        ({"ca_file": Path("missing.pem")}, "HOOKSAGA_CA_FILE"),
        ({"max_retry_limit": 51}, "HOOKSAGA_MAX_RETRY_LIMIT"),
        ({"retry_jitter": -0.1}, "HOOKSAGA_RETRY_JITTER"),
        ({"http_connect_timeout_seconds": 16}, "HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS"),
        ({"payload_max_bytes": 2_000_000}, "HOOKSAGA_PAYLOAD_MAX_BYTES"),
    ],
)
def test_numbers_out_of_order_are_refused_by_name(change: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidDeployment, match=word):
        replace(DEV, **change)


@pytest.mark.parametrize(
    ("chosen", "followed"),
    [
        ({"http_timeout_seconds": 2}, {"http_connect_timeout_seconds": 2}),
        ({"http_connect_timeout_seconds": 20}, {"http_timeout_seconds": 20}),
        ({"max_delay_seconds": 5}, {"base_delay_seconds": 5}),
        ({"lease_seconds": 40}, {"delivery": replace(DEV.delivery, timeout_seconds=39)}),
        ({"lease_seconds": 500}, {"delivery": DEV.delivery, "redispatch_seconds": 1002}),
        ({"delivery": FunctionLimits(200, 10)}, {"lease_seconds": 205, "redispatch_seconds": 2400}),
        ({"delivery": FunctionLimits(45, 4)}, {"slow_concurrency": 2, "lease_seconds": 60}),
    ],
)
def test_what_is_not_chosen_follows_what_is(chosen: dict[str, Any], followed: dict[str, object]) -> None:
    env = Environment(name="own", **chosen)
    assert {name: getattr(env, name) for name in followed} == followed
    assert env.delivery.timeout_seconds < env.lease_seconds < env.visibility_seconds("delivery")
    assert env.visibility_seconds("delivery") < env.redispatch_seconds


def test_one_machine_in_sqs_mode_follows_its_lease_too() -> None:
    kinds = function_kinds(local_environment(40))
    assert (kinds["delivery"].timeout_seconds, kinds["delivery"].visibility_seconds) == (39, 234)
    with pytest.raises(InvalidSettings, match="longest POST"):
        local_environment(35)


@pytest.mark.parametrize("env", [*ENVIRONMENTS.values(), LOCAL], ids=lambda env: env.name)
def test_the_environments_are_in_order(env: Environment) -> None:
    assert replace(env) == env


@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=lambda env: env.name)
def test_a_new_endpoint_that_hangs_leaves_copies_to_the_others(env: Environment) -> None:
    assert env.delivery.concurrency - env.slow_concurrency > FIRST_LIMIT


def test_what_is_not_chosen_is_what_one_machine_has() -> None:
    assert {name: getattr(DEV, name) for name in SETTINGS} == {
        name: Settings.model_fields[name].default for name in SETTINGS
    }


def test_every_function_is_told_what_was_chosen(anywhere: Deployment) -> None:
    told = anywhere.functions.keys() - {"migrate"}
    assert (bool(told), bool(DEV.variables)) == (True, True)
    for name in told:
        variables = anywhere.environment(name)
        assert {key: variables[key] for key in DEV.variables} == DEV.variables


def test_the_page_of_settings_marks_what_a_deployment_lets_choose() -> None:
    page = Path("docs/configuration.md").read_text(encoding="utf-8")
    unset = {
        **dict.fromkeys(("retention_days", "dead_letter_days", "payload_days", "event_days"), 1.0),
        "intake_tenant": "acme",
        "intake_ordering_key": "{/detail/order}",
        "intake_attributes": "order=/detail/order",
        "egress_allow": ("10.0.0.0/8",),
    }
    chosen = replace(DEV, **unset).variables
    assert set(re.findall(r"`(HOOKSAGA_\w+)` ◆", page)) == {*chosen, "HOOKSAGA_CA_FILE"}


@pytest.mark.parametrize("queue", WORK)
def test_a_message_comes_back_after_six_function_timeouts(anywhere: Deployment, queue: str) -> None:
    visibility = anywhere.resources[anywhere.queue(queue)]["Properties"]["VisibilityTimeout"]
    assert visibility == 6 * anywhere.functions[WORK[queue]]["Timeout"]


def test_delivery_has_time_for_a_post_and_less_than_its_lease(anywhere: Deployment) -> None:
    variables = anywhere.environment("delivery")
    timeout, lease = anywhere.functions["delivery"]["Timeout"], float(variables["HOOKSAGA_LEASE_SECONDS"])
    visibility = anywhere.resources[anywhere.queue("delivery")]["Properties"]["VisibilityTimeout"]
    assert float(variables["HOOKSAGA_HTTP_TIMEOUT_SECONDS"]) < timeout < lease < visibility
    assert visibility < float(variables["HOOKSAGA_REDISPATCH_SECONDS"])


def test_the_database_has_a_connection_for_every_copy(on_aws: Deployment) -> None:
    (parameters,) = on_aws.of_type("AWS::RDS::DBParameterGroup").values()
    limit = int(parameters["Properties"]["Parameters"]["max_connections"])
    env = ENVIRONMENTS[on_aws.functions["ingest"]["FunctionName"].split("-")[1]]
    assert env.connections < limit


@pytest.mark.parametrize("env", ENVIRONMENTS.values(), ids=lambda env: env.name)
def test_the_database_is_asked_for_no_more_connections_than_rds_itself_would_allow(env: Environment) -> None:
    instance = read_prices().rds_postgresql.instances[env.database.instance_class]
    assert env.database.connection_limit <= connections_of(instance.memory_gib)


def test_a_limit_that_is_raised_needs_a_reboot_and_the_refusal_says_so() -> None:
    with pytest.raises(InvalidDeployment, match="aws rds reboot-db-instance"):
        replace(DEV, database=DatabaseSettings(connection_limit=70))


def test_each_mapping_has_its_own_share_and_gives_back_what_failed(anywhere: Deployment) -> None:
    shares = {}
    for one in anywhere.of_type("AWS::Lambda::EventSourceMapping").values():
        queue = anywhere.resources[anywhere.text(one["Properties"]["EventSourceArn"]).split(".")[0]]
        shares[queue["Properties"]["QueueName"].split("-", 2)[2]] = one["Properties"]["ScalingConfig"]
        assert one["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert set(shares) == set(WORK)
    assert all(share["MaximumConcurrency"] >= 2 for share in shares.values())


@pytest.mark.parametrize("level", [Latency.LOW, Latency.ECONOMY])
def test_a_mapping_has_the_batch_and_the_window_of_its_level(
    dev: Deployment, economical: Deployment, level: Latency
) -> None:
    deployment = economical if level is Latency.ECONOMY else dev
    found: dict[str, tuple[int, int]] = {}
    for one in deployment.of_type("AWS::Lambda::EventSourceMapping").values():
        properties = one["Properties"]
        queue = deployment.resources[deployment.text(properties["EventSourceArn"]).split(".")[0]]
        name = queue["Properties"]["QueueName"].split("-", 2)[2].replace("-", "_")
        found[name] = (properties["BatchSize"], properties.get("MaximumBatchingWindowInSeconds", 0))
    assert found == {name: (one.size, one.window_seconds) for name, one in LEVELS[level].items()}


def test_a_message_is_invisible_while_it_is_gathered_too(economical: Deployment) -> None:
    visibility = economical.resources[economical.queue("delivery")]["Properties"]["VisibilityTimeout"]
    gathering = longest_gathering_seconds(Latency.ECONOMY)
    assert gathering >= 20
    assert visibility == 6 * economical.functions["delivery"]["Timeout"] + gathering
    assert visibility < float(economical.environment("delivery")["HOOKSAGA_REDISPATCH_SECONDS"])


def test_statements_are_prepared_where_no_proxy_shares_connections(
    on_aws: Deployment, with_proxy: Deployment
) -> None:
    name = "HOOKSAGA_PREPARED_STATEMENTS"
    assert len(on_aws.functions) > 1
    for function in on_aws.functions.keys() - {"migrate"}:
        assert on_aws.environment(function)[name] == "true"
        assert name not in with_proxy.environment(function)


def test_no_function_with_a_queue_has_reserved_copies(anywhere: Deployment) -> None:
    """A mapping that asks for more copies than are reserved fills the redrive queue."""
    for function in set(WORK.values()):
        assert "ReservedConcurrentExecutions" not in anywhere.functions[function]


def test_what_was_given_up_is_kept_for_two_weeks(anywhere: Deployment) -> None:
    dead = anywhere.resources[anywhere.queue("dead-tasks")]["Properties"]
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600
    for queue in WORK:
        redrive = anywhere.resources[anywhere.queue(f"{queue}-redrive")]["Properties"]
        assert redrive["MessageRetentionPeriod"] == 14 * 24 * 3600
        policy = anywhere.resources[anywhere.queue(queue)]["Properties"]["RedrivePolicy"]
        assert anywhere.text(policy["deadLetterTargetArn"]) == f"{anywhere.queue(f'{queue}-redrive')}.Arn"
