"""The page of `GET /metrics`, read by the parser of the format's own library."""

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hooksaga.core.outcomes import ErrorClass
from hooksaga.operations.observe import Gauges
from hooksaga.runtime.metrics import AGES, FLOW_STATES, LATENCIES, Metric
from hooksaga.worker.open_metrics import COUNTERS, DELIVERY_SECONDS, OpenMetrics

Sample = tuple[str, tuple[tuple[str, str], ...]]


def parsed(metrics: OpenMetrics, gauges: Gauges | None = None) -> dict[Sample, float]:
    families = text_string_to_metric_families(metrics.text(gauges).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_begin_at_zero_so_that_a_rate_sees_the_first_increase() -> None:
    samples = parsed(OpenMetrics())
    assert samples["hooksaga_events_accepted_total", ()] == 0
    for error_class in ErrorClass:
        assert samples["hooksaga_delivery_failed_total", (("error_class", error_class.value),)] == 0
    assert samples["hooksaga_delivery_latency_seconds_count", ()] == 0


def test_what_is_counted_is_shown() -> None:
    metrics = OpenMetrics()
    metrics.count(Metric.EVENTS_ACCEPTED, 3)
    metrics.count(Metric.EVENTS_ACCEPTED, 2)
    metrics.count(Metric.DELIVERY_FAILED, 4, ErrorClass.TLS)
    samples = parsed(metrics)
    assert samples["hooksaga_events_accepted_total", ()] == 5
    assert samples["hooksaga_delivery_failed_total", (("error_class", "tls"),)] == 4
    assert samples["hooksaga_delivery_failed_total", (("error_class", "dns"),)] == 0


def test_latencies_are_in_seconds_and_fall_into_the_first_bucket_that_holds_them() -> None:
    metrics = OpenMetrics()
    metrics.observe(Metric.DELIVERY_LATENCY, [5, 5.1, 30_000, 31_000])
    samples = parsed(metrics)
    buckets = {
        labels[0][1]: value
        for (name, labels), value in samples.items()
        if name == "hooksaga_delivery_latency_seconds_bucket"
    }
    assert (buckets["0.005"], buckets["0.01"], buckets["30.0"], buckets["+Inf"]) == (1, 2, 3, 4)
    assert len(buckets) == len(DELIVERY_SECONDS) + 1
    assert samples["hooksaga_delivery_latency_seconds_count", ()] == 4
    assert samples["hooksaga_delivery_latency_seconds_sum", ()] == pytest.approx(61.0101)


def test_gauges_are_shown_as_they_were_read_and_left_out_when_they_were_not() -> None:
    gauges = Gauges(
        outbox_age_seconds=1.5,
        oldest_due_saga_age_seconds=2.5,
        retry_debt_sagas=3,
        in_flight_jobs=4,
        paused=5,
        retry_after=6,
        breaker_open=7,
        breaker_open_for_an_hour=8,
        retention_behind_seconds=9.5,
    )
    samples = parsed(OpenMetrics(), gauges)
    states = {"paused": 5, "retry_after": 6, "breaker_open": 7}
    for state, many in states.items():
        assert samples["hooksaga_waiting_subscriptions", (("state", state),)] == many
    assert {name: value for (name, labels), value in samples.items() if not labels and name in GAUGES} == {
        "hooksaga_outbox_age_seconds": 1.5,
        "hooksaga_oldest_due_saga_age_seconds": 2.5,
        "hooksaga_retry_debt_sagas": 3,
        "hooksaga_in_flight_jobs": 4,
        "hooksaga_breakers_open_for_an_hour": 8,
        "hooksaga_retention_behind_seconds": 9.5,
    }
    assert not GAUGES & {name for name, _ in parsed(OpenMetrics())}


GAUGES = {
    "hooksaga_outbox_age_seconds",
    "hooksaga_oldest_due_saga_age_seconds",
    "hooksaga_retry_debt_sagas",
    "hooksaga_in_flight_jobs",
    "hooksaga_breakers_open_for_an_hour",
    "hooksaga_retention_behind_seconds",
}


def test_every_metric_of_the_specification_has_its_place() -> None:
    of_sqs_mode = {Metric.DEAD_TASK_EVENT_PUBLISH_FAILED}
    assert {*COUNTERS, *LATENCIES, *AGES, *FLOW_STATES} | of_sqs_mode == set(Metric)
