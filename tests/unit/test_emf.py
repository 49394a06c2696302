"""Lines in CloudWatch's embedded metric format."""

import json
from typing import Any

import pytest

from hooksaga.aws.emf import EmfMetrics
from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.metrics import Metric
from tests.emf_lines import check_emf

SERVICE = "hooksaga-dev-delivery"


def flushed(metrics: EmfMetrics, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    metrics.flush()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        check_emf(line)
    return lines


def test_counts_of_an_invocation_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics(SERVICE)
    metrics.count(Metric.JOBS_CLAIMED, 3)
    metrics.count(Metric.JOBS_CLAIMED, 2)
    metrics.observe(Metric.DELIVERY_LATENCY, [5, 7.5])
    metrics.observe(Metric.OUTBOX_AGE, [0.25])
    (line,) = flushed(metrics, capsys)
    assert line["service"] == SERVICE
    assert (line["JobsClaimed"], line["DeliveryLatency"], line["OutboxAge"]) == ([5], [5, 7.5], [0.25])
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["service"]]
    assert {one["Name"]: one["Unit"] for one in directive["Metrics"]} == {
        "JobsClaimed": "Count",
        "DeliveryLatency": "Milliseconds",
        "OutboxAge": "Seconds",
    }


def test_failures_are_counted_in_all_and_by_class(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = EmfMetrics(SERVICE)
    metrics.count(Metric.DELIVERY_FAILED, 2, ErrorClass.HTTP_5XX)
    metrics.count(Metric.DELIVERY_FAILED, 1, ErrorClass.DNS)
    in_all, *by_class = flushed(metrics, capsys)
    assert in_all["DeliveryFailed"] == [3]
    assert "error_class" not in in_all
    assert {line["error_class"]: line["DeliveryFailed"] for line in by_class} == {"http_5xx": [2], "dns": [1]}
    for line in by_class:
        (directive,) = line["_aws"]["CloudWatchMetrics"]
        assert [sorted(names) for names in directive["Dimensions"]] == [["error_class", "service"]]


def test_nothing_counted_writes_nothing_and_everything_is_written_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    metrics = EmfMetrics(SERVICE)
    metrics.count(Metric.SAGAS_DEAD_LETTERED, 0)
    metrics.observe(Metric.END_TO_END_LATENCY, [])
    assert flushed(metrics, capsys) == []
    metrics.count(Metric.SAGAS_CREATED, 1)
    assert len(flushed(metrics, capsys)) == 1
    assert flushed(metrics, capsys) == []


@pytest.mark.parametrize("many", [99, 100, 101, 200, 1234])
def test_more_values_than_cloudwatch_takes_are_several_lines(
    capsys: pytest.CaptureFixture[str], many: int
) -> None:
    metrics = EmfMetrics(SERVICE)
    metrics.observe(Metric.END_TO_END_LATENCY, [float(number) for number in range(many)])
    lines = flushed(metrics, capsys)
    assert [value for line in lines for value in line["EndToEndLatency"]] == list(range(many))


def test_the_dimension_is_the_name_of_the_function(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "hooksaga-prod-router")
    metrics = EmfMetrics()
    metrics.count(Metric.SAGAS_CREATED, 1)
    assert flushed(metrics, capsys)[0]["service"] == "hooksaga-prod-router"
