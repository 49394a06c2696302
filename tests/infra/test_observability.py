"""Each alarm has its page, and each page its alarm."""

import re
from typing import Any

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from docs.generators.deployment_diagram import PAGE, diagram, page_with
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.aws.emf import NAMESPACE
from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import Metric
from tests.infra.conftest import ROOT
from tests.infra.deployment import Deployment

RUNBOOK = ROOT / "docs" / "operations" / "alarms.md"
WORK = ("intake", "routing", "orchestration", "delivery", "delivery-slow")


def pages_of(*deployments: Deployment) -> set[str]:
    alarms = [
        one for deployment in deployments for one in deployment.of_type("AWS::CloudWatch::Alarm").values()
    ]
    return {one["Properties"]["AlarmDescription"].split("#")[1] for one in alarms}


def test_every_alarm_leads_to_a_heading_and_every_heading_has_an_alarm(
    dev: Deployment, prod: Deployment
) -> None:
    headings = set(re.findall(r"^## (.+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
    assert pages_of(dev, prod) == headings


def test_every_alarm_tells_somebody(anywhere: Deployment) -> None:
    (topic,) = anywhere.of_type("AWS::SNS::Topic")
    alarms = anywhere.of_type("AWS::CloudWatch::Alarm")
    assert alarms
    for one in alarms.values():
        assert [anywhere.text(action) for action in one["Properties"]["AlarmActions"]] == [topic]


def test_alarms_of_this_account_may_tell_the_topic_and_nobody_over_plain_http(on_aws: Deployment) -> None:
    (topic,) = on_aws.of_type("AWS::SNS::Topic")
    (policy,) = on_aws.of_type("AWS::SNS::TopicPolicy").values()
    assert [on_aws.text(one) for one in policy["Properties"]["Topics"]] == [topic]
    by_effect = {one["Effect"]: one for one in policy["Properties"]["PolicyDocument"]["Statement"]}
    assert set(by_effect) == {"Allow", "Deny"}
    allowed = by_effect["Allow"]
    assert (allowed["Action"], on_aws.text(allowed["Resource"])) == ("sns:Publish", topic)
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert on_aws.text(allowed["Condition"]["StringEquals"]["aws:SourceAccount"]) == "AWS::AccountId"
    assert by_effect["Deny"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("queue", WORK)
def test_what_is_given_up_raises_an_alarm(anywhere: Deployment, queue: str) -> None:
    watched = {
        anywhere.text(dimension["Value"]).split(".")[0]
        for one in anywhere.of_type("AWS::CloudWatch::Alarm").values()
        if one["Properties"].get("MetricName") == "ApproximateNumberOfMessagesVisible"
        for dimension in one["Properties"]["Dimensions"]
    }
    assert anywhere.queue(f"{queue}-redrive") in watched


def test_alarms_on_our_own_metrics_watch_what_a_function_of_this_deployment_writes(
    anywhere: Deployment,
) -> None:
    names = {one["FunctionName"] for one in anywhere.functions.values()}
    watched = [
        one["Properties"]
        for one in anywhere.of_type("AWS::CloudWatch::Alarm").values()
        if one["Properties"].get("Namespace") == NAMESPACE
    ]
    assert {one["MetricName"] for one in watched} == {
        Metric.LEASES_RESET,
        Metric.SAGAS_DEAD_LETTERED,
        Metric.ENDPOINTS_DISABLED,
        Metric.BREAKERS_OPEN_FOR_AN_HOUR,
        Metric.RETENTION_BEHIND,
        Metric.DEAD_TASK_EVENT_PUBLISH_FAILED,
        Metric.OUTBOX_AGE,
        Metric.OLDEST_DUE_SAGA_AGE,
        Metric.END_TO_END_LATENCY,
    }
    for one in watched:
        (dimension,) = one["Dimensions"]
        assert dimension["Name"] == "service"
        assert dimension["Value"] in names, one


def test_the_dashboard_shows_every_metric(dev: Deployment) -> None:
    (board,) = dev.of_type("AWS::CloudWatch::Dashboard").values()
    shown = dev.text(board["Properties"]["DashboardBody"])
    exceptional = {Metric.LEASES_RESET, Metric.ENDPOINTS_DISABLED, Metric.DEAD_TASK_EVENT_PUBLISH_FAILED}
    assert [metric for metric in Metric if metric not in exceptional and f'"{metric}"' not in shown] == []


def test_functions_and_gateway_write_traces_only_when_asked_to(
    on_aws: Deployment, economical: Deployment
) -> None:
    def modes(deployment: Deployment) -> tuple[set[str], list[bool]]:
        stages = deployment.of_type("AWS::ApiGateway::Stage").values()
        functions = {one.get("TracingConfig", {}).get("Mode", "off") for one in deployment.functions.values()}
        return functions, [one["Properties"]["TracingEnabled"] for one in stages]

    assert modes(economical) == ({"Active"}, [True])
    assert modes(on_aws) == ({"off"}, [False])


def test_an_operator_is_told_the_next_command(anywhere: Deployment) -> None:
    outputs = {
        name: one["Value"] for template in anywhere.templates for name, one in template["Outputs"].items()
    }
    names = ("ApiUrl", "AdminFunction", "NextStep", "DeadTasksQueueUrl", "AlarmTopic")
    assert {f"Hooks{name}" for name in names} <= set(outputs)
    assert outputs["HooksNextStep"].startswith("hooksaga keys create --stack hooksaga-")


def test_the_drawing_is_of_the_templates(dev: Deployment) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(diagram(dev.resources)), "python -m docs.generators.deployment_diagram"


def alarms_of(deployment: Deployment, page: str) -> dict[str, dict[str, Any]]:
    """The properties of the alarms with this heading, by their subject."""
    return {
        one["Properties"]["AlarmName"].split(": ")[1]: one["Properties"]
        for one in deployment.of_type("AWS::CloudWatch::Alarm").values()
        if one["Properties"]["AlarmDescription"].endswith(f"#{page}")
    }


def test_a_disabled_rule_is_seen_under_traffic(on_aws: Deployment) -> None:
    """The function's own number of runs contains those of messages and requests."""
    rules = {one["Properties"]["Name"] for one in on_aws.of_type("AWS::Events::Rule").values()}
    alarms = alarms_of(on_aws, "ticks-missing").values()
    watched = {on_aws.text(one["Dimensions"][0]["Value"]) for one in alarms}
    assert watched == rules
    for one in alarms:
        assert (one["Namespace"], one["MetricName"]) == ("AWS/Events", "Invocations")
        assert (one["TreatMissingData"], one["ComparisonOperator"]) == ("breaching", "LessThanThreshold")


def test_every_function_tells_of_throttles(anywhere: Deployment) -> None:
    assert set(alarms_of(anywhere, "function-throttled")) == anywhere.functions.keys() - {"migrate"}


def test_each_way_out_is_watched(dev: Deployment, prod: Deployment) -> None:
    (instance,) = alarms_of(dev, "nat-faults").values()
    assert dev.text(instance["Dimensions"][0]["Value"]) in dev.of_type("AWS::EC2::Instance")
    faults = alarms_of(prod, "nat-faults").values()
    watched = {(one["MetricName"], prod.text(one["Dimensions"][0]["Value"])) for one in faults}
    gateways = prod.of_type("AWS::EC2::NatGateway")
    assert watched == {
        (metric, gateway) for metric in ("ErrorPortAllocation", "PacketsDropCount") for gateway in gateways
    }


def test_one_address_may_use_the_whole_throttle_and_its_block_is_told(prod: Deployment) -> None:
    (firewall,) = prod.of_type("AWS::WAFv2::WebACL").values()
    rules = {one["Name"]: one for one in firewall["Properties"]["Rules"]}
    (stage,) = prod.of_type("AWS::ApiGateway::Stage").values()
    throttle = stage["Properties"]["MethodSettings"][0]["ThrottlingRateLimit"]
    limit = rules["too-many-requests"]["Statement"]["RateBasedStatement"]["Limit"]
    assert limit >= 300 * throttle
    alarm = alarms_of(prod, "requests-blocked")["too-many-requests"]
    dimensions = {one["Name"]: prod.text(one["Value"]) for one in alarm["Dimensions"]}
    seen = firewall["Properties"]["VisibilityConfig"]["MetricName"]
    assert (dimensions["WebACL"], dimensions["Rule"]) == (seen, "too-many-requests")
    assert alarm["Threshold"] == 1


def test_the_share_of_failed_attempts_counts_every_class(on_aws: Deployment) -> None:
    (alarm,) = alarms_of(on_aws, "deliveries-fail").values()
    classes = {
        dimension["Value"]
        for one in alarm["Metrics"]
        for dimension in one.get("MetricStat", {}).get("Metric", {}).get("Dimensions", [])
        if dimension["Name"] == "error_class"
    }
    assert classes == {one.value for one in ErrorClass}


def test_the_database_is_watched_for_what_stops_it(on_aws: Deployment) -> None:
    pages = {page for page in pages_of(on_aws) if page.startswith(("database-", "transaction-"))}
    always = {"busy", "memory-low", "disk-busy", "storage-low", "connections"}
    small = ENVIRONMENTS[env_name(on_aws)].database.instance_class.startswith("t")
    credits_low = {"database-credits-low"} if small else set[str]()
    assert pages == {f"database-{one}" for one in always} | {"transaction-ids-old"} | credits_low


def env_name(deployment: Deployment) -> str:
    return deployment.functions["ingest"]["FunctionName"].split("-")[1]
