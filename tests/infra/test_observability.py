"""Each alarm has its page, and each page its alarm."""

import re

import pytest

pytest.importorskip("aws_cdk", reason="needs the infra extra: make install-infra")

from docs.generators.deployment_diagram import PAGE, diagram, page_with
from hooksaga.aws.emf import NAMESPACE
from hooksaga.runtime.metrics import Metric
from tests.infra.conftest import ROOT
from tests.infra.deployment import Deployment

RUNBOOK = ROOT / "docs" / "operations" / "alarms.md"
WORK = ("routing", "orchestration", "delivery", "delivery-slow")


def pages_of(deployment: Deployment) -> set[str]:
    alarms = deployment.of_type("AWS::CloudWatch::Alarm").values()
    return {one["Properties"]["AlarmDescription"].split("#")[1] for one in alarms}


def test_every_alarm_leads_to_a_heading_and_every_heading_has_an_alarm(dev: Deployment) -> None:
    headings = set(re.findall(r"^## (.+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
    assert pages_of(dev) == headings


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


def test_functions_and_gateway_write_traces(on_aws: Deployment) -> None:
    assert {one["TracingConfig"]["Mode"] for one in on_aws.functions.values()} == {"Active"}
    stages = on_aws.of_type("AWS::ApiGateway::Stage").values()
    assert [one["Properties"]["TracingEnabled"] for one in stages] == [True]


def test_an_operator_is_told_the_next_command(anywhere: Deployment) -> None:
    outputs = {
        name: one["Value"] for template in anywhere.templates for name, one in template["Outputs"].items()
    }
    assert {"ApiUrl", "AdminFunction", "NextStep", "DeadTasksQueueUrl", "AlarmTopic"} <= set(outputs)
    assert outputs["NextStep"].startswith("hooksaga keys create --stack hooksaga-")


def test_the_drawing_is_of_the_templates(dev: Deployment) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(diagram(dev.resources)), "python -m docs.generators.deployment_diagram"
