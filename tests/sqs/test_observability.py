"""One event through five functions and their queues: its trace in every message and every line, and what is counted."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from hooksaga.core.trace import span_id_of
from hooksaga.local.sqs.event_source import Batch
from tests.emf_lines import check_emf
from tests.log_lines import canonical_lines, json_lines, kinds, moves_of
from tests.sqs.conftest import kill_busy, until
from tests.sqs.running_pipeline import Pipeline, running_pipeline

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
]

CANARY = "canary-payload-51c2"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Pipeline]:
    async with running_pipeline(
        tmp_path_factory.mktemp("observe"), module_database, sqs_endpoint
    ) as pipeline:
        yield pipeline


def logs(pipeline: Pipeline) -> dict[str, str]:
    """Return the log of each function."""
    return {name: function.log() for name, function in pipeline.system.functions.items()}


async def post(pipeline: Pipeline, event_type: str, *, traceparent: str | None = None) -> str:
    headers = {} if traceparent is None else {"traceparent": traceparent}
    event = {"event_type": event_type, "payload": {"canary": CANARY}}
    return (await pipeline.call("POST", "/v1/events", json=event, headers=headers))["id"]


def seen_messages(pipeline: Pipeline) -> list[dict[str, Any]]:
    """From now on every message that a function is given is kept here."""
    seen: list[dict[str, Any]] = []

    def see(batch: Batch) -> list[Batch]:
        seen.extend(batch)
        return [batch]

    pipeline.weather.change = see
    return seen


async def test_the_trace_of_an_event_is_in_all_its_messages_and_lines(pipeline: Pipeline) -> None:
    seen = seen_messages(pipeline)
    _, good = await pipeline.subscribe("o.traced", "/ok")
    _, flaky = await pipeline.subscribe("o.traced", "/flaky/1")
    event_id = await post(pipeline, "o.traced", traceparent=TRACEPARENT)
    assert await pipeline.until_ended("o.traced", 2) == {"Completed": 2}
    await pipeline.until_quiet()

    traces = [one["MessageAttributes"]["correlation_id"]["StringValue"] for one in seen]
    assert set(traces) == {TRACE}
    assert len(traces) >= 1 + 2 + 3 + 3  # routing; both subscriptions; their jobs; their results
    first, second = (saga["id"] for saga in pipeline.sagas("o.traced"))
    jobs = pipeline.rows("SELECT id, saga_id, claim_count FROM webhook_delivery_jobs ORDER BY id")
    spans = {
        f"00-{TRACE}-{span_id_of(job['id'], job['claim_count'])}-01"
        for job in jobs
        if job["saga_id"] in (first, second)
    }
    received = {one.traceparent for one in [*pipeline.received(good), *pipeline.received(flaky)]}
    assert received == spans
    assert len(received) == 3

    written = "\n".join(logs(pipeline).values())
    lines = canonical_lines(written, event_id)
    assert kinds(lines) == {"event routed": 1, "attempt": 3, "saga moved": 2 + 4}
    assert {line["correlation_id"] for line in lines} == {TRACE}
    assert all(line["function_request_id"] and line["function_version"] for line in lines)
    assert all(isinstance(line["cold_start"], bool) for line in lines)
    assert moves_of(lines, first) == [("Pending", "InProgress"), ("InProgress", "Completed")]


async def test_without_a_trace_the_event_is_its_own_in_every_message(pipeline: Pipeline) -> None:
    seen = seen_messages(pipeline)
    _, path = await pipeline.subscribe("o.own", "/ok")
    event_id = await post(pipeline, "o.own")
    assert await pipeline.until_ended("o.own", 1) == {"Completed": 1}
    await pipeline.until_quiet()
    own = event_id.removeprefix("evt_")
    assert {one["MessageAttributes"]["correlation_id"]["StringValue"] for one in seen} == {own}
    assert [one.traceparent.split("-")[1] for one in pipeline.received(path)] == [own]


async def test_what_the_sweep_sends_is_in_the_trace_too(pipeline: Pipeline) -> None:
    """The messages that would have started it are lost; the tick finds it by SQL."""
    await pipeline.subscribe("o.swept", "/ok")
    seen = seen_messages(pipeline)
    keep = pipeline.weather.change
    pipeline.weather.change = lambda batch: [] if b'"event_id"' in str(batch).encode() else keep(batch)
    await post(pipeline, "o.swept", traceparent=TRACEPARENT.replace("4bf9", "4bfa"))
    assert await pipeline.until_ended("o.swept", 1) == {"Completed": 1}
    pipeline.weather.clear()
    await pipeline.until_quiet()
    assert {one["MessageAttributes"]["correlation_id"]["StringValue"][:4] for one in seen} == {"4bfa"}


@pytest.mark.parametrize(
    ("queue", "body", "message"),
    [
        ("routing", "x", "malformed message deleted"),
        ("delivery", '{"job_id": 1}', "malformed message deleted"),
        ("routing", '{"event_id": 999999999}', "message without work"),
        ("orchestration", '{"subscription_id": 999999999}', "message without work"),
        ("orchestration", '{"job_id": 999999999}', "message without work"),
        ("orchestration", '{"cancel_saga_id": 999999999}', "saga not canceled"),
        ("delivery-slow", '{"job_id": 999999999, "saga_id": 1}', "message without work"),
    ],
)
async def test_a_message_that_changes_nothing_is_told_with_its_trace(
    pipeline: Pipeline, queue: str, body: str, message: str
) -> None:
    trace = uuid4().hex
    attribute = {"correlation_id": {"DataType": "String", "StringValue": trace}}
    url = pipeline.system.queues.work[queue]
    await pipeline.system.sqs.call("SendMessage", QueueUrl=url, MessageBody=body, MessageAttributes=attribute)

    def told() -> list[dict[str, Any]]:
        lines = json_lines("\n".join(logs(pipeline).values()))
        return [line for line in lines if line.get("correlation_id") == trace]

    (line,) = await until(told, "it is told")
    assert line["message"] == message
    assert message != "message without work" or "999999999" in str(line)
    await pipeline.until_quiet()


def emf(pipeline: Pipeline) -> dict[str, list[dict[str, Any]]]:
    """The metrics' lines by function, each by the rules."""
    found = {
        name: [line for line in json_lines(text) if "_aws" in line] for name, text in logs(pipeline).items()
    }
    for name, lines in found.items():
        for line in lines:
            check_emf(line)
            assert line["service"] == f"hooksaga-{name}"
    return found


def sums(lines: list[dict[str, Any]]) -> Counter[str]:
    """Return the sum of each metric, and by error class."""
    found: Counter[str] = Counter()
    for line in lines:
        by = f"[{line['error_class']}]" if "error_class" in line else ""
        for name, value in line.items():
            if name not in ("_aws", "service", "error_class"):
                found[name + by] += len(value) if name.endswith("Latency") else sum(value)
    return found


async def test_each_function_counts_what_it_does(pipeline: Pipeline) -> None:
    before = {name: sums(lines) for name, lines in emf(pipeline).items()}
    await pipeline.subscribe("o.counted", "/ok")
    await pipeline.subscribe("o.counted", "/down")
    await post(pipeline, "o.counted")
    assert await pipeline.until_ended("o.counted", 2) == {"Completed": 1, "DeadLettered": 1}
    await pipeline.until_quiet()
    expected = {
        "ingest": {"EventsAccepted": 1},
        "router": {"SagasCreated": 2},
        "delivery": {
            "JobsClaimed": 3,
            "DeliverySucceeded": 1,
            "DeliveryFailed": 2,
            "DeliveryFailed[http_5xx]": 2,
            "DeliveryLatency": 3,
        },
        "orchestrator": {"SagasDeadLettered": 1, "EndToEndLatency": 1},
    }

    def counted() -> bool:
        grown = {name: sums(lines) - before[name] for name, lines in emf(pipeline).items()}
        return all(
            grown[name].get(metric) == many
            for name, wanted in expected.items()
            for metric, many in wanted.items()
        )

    await until(counted, str(expected))
    ages: defaultdict[str, list[float]] = defaultdict(list)
    for lines in emf(pipeline).values():
        for line in lines:
            for name in ("OutboxAge", "OldestDueSagaAge"):
                ages[name] += line.get(name, [])
    assert ages["OutboxAge"], "each tick of the router tells it"
    assert ages["OldestDueSagaAge"], "each tick of the orchestrator tells it"


async def test_the_monitors_tick_tells_how_many_subscriptions_wait(pipeline: Pipeline) -> None:
    names = ("SubscriptionsPaused", "SubscriptionsInRetryAfter", "BreakersOpen", "BreakersOpenForAnHour")
    subscription, _ = await pipeline.subscribe("o.paused", "/ok")
    await pipeline.call("POST", f"/v1/subscriptions/{subscription}/pause")
    await post(pipeline, "o.paused")

    def told() -> list[list[float]]:
        return [
            [*line[name]] for line in emf(pipeline)["health_monitor"][-1:] for name in names if name in line
        ]

    await until(lambda: told() == [[1], [0], [0], [0]], "the paused one is counted")
    await pipeline.call("POST", f"/v1/subscriptions/{subscription}/resume")
    assert await pipeline.until_ended("o.paused", 1) == {"Completed": 1}
    await until(lambda: told() == [[0], [0], [0], [0]], "it is counted no more")
    await pipeline.until_quiet()


async def test_no_line_and_no_metric_has_anything_of_a_payload(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("o.canary", "/ok")
    await post(pipeline, "o.canary")
    assert await pipeline.until_ended("o.canary", 1) == {"Completed": 1}
    assert CANARY in pipeline.received(path)[0].body
    assert [name for name, text in logs(pipeline).items() if CANARY in text] == []
    assert "o.canary" not in str(emf(pipeline))


async def test_a_reset_lease_is_told_and_counted(pipeline: Pipeline) -> None:
    _, path = await pipeline.subscribe("o.reset", "/slow/1000")
    await post(pipeline, "o.reset")
    await until(lambda: pipeline.received(path), "the POST is in progress")
    kill_busy(pipeline.system.functions["delivery"])
    for column in ("lease_until = now() - interval '1 second'", "created_at = now() - interval '1 minute'"):
        pipeline.rewrite(f"UPDATE webhook_delivery_jobs SET {column} WHERE status = 'Leased'")  # type: ignore[arg-type]
    assert await pipeline.until_ended("o.reset", 1) == {"Completed": 1}
    (saga,) = pipeline.sagas("o.reset")
    (line,) = (
        one for one in json_lines(logs(pipeline)["lease_cleaner"]) if one.get("message") == "lease reset"
    )
    assert (line["saga_id"], line["subscription_id"]) == (saga["id"], saga["subscription_id"])
    assert (line["level"], line["status"], line["claim"]) == ("WARNING", "Pending", 1)
    assert line["worker_id"]
    assert line["lease_expiration"]
    assert sums(emf(pipeline)["lease_cleaner"])["LeasesReset"] == 1
    await pipeline.until_quiet()
