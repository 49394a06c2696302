"""One event from the producer's request to the receiver: its trace, its log lines, and the counts on `/metrics`."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from hooksaga.core.trace import span_id_of
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from tests.api.http_client import event_body
from tests.api.running_system import new_name, wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.log_lines import canonical_lines, json_lines, kinds, moves_of

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = ("traceparent", f"00-{TRACE}-{SPAN}-01")
ENDED = ("Completed", "DeadLettered")


@pytest.fixture(scope="module")
def up(certificates: Certificates, recorder: Recorder) -> Iterator[UpProcess]:
    """With the log level that it has when nobody asks for another. It ends before the receiver does."""
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-observe-"))
    process = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=EmbeddedPostgres(folder).start(),  # it would start its own again
        HOOKSAGA_LOG_LEVEL="INFO",
        HOOKSAGA_MAX_RETRY_LIMIT="2",
    )
    process.start()
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


class Told:
    """One event with what became of it, and everything that was told of it."""

    def __init__(self, up: UpProcess, recorder: Recorder, event_id: str) -> None:
        self.up, self.recorder, self.event_id = up, recorder, event_id
        self.view = wait_until(self._ended, f"{event_id} has ended")
        self.lines = wait_until(self._all_lines, f"the lines of {event_id}")

    def _ended(self) -> dict[str, Any] | None:
        view = self.up.api.good("GET", f"/v1/events/{self.event_id}")
        sagas = view["sagas"]
        return view if sagas and all(saga["status"] in ENDED for saga in sagas) else None

    def _all_lines(self) -> list[dict[str, Any]] | None:
        """The last one is written after the commit that ends the saga."""
        lines = canonical_lines(self.up.log.read_text(), self.event_id)
        ended = [line for line in lines if line.get("status") in ENDED and line["message"] == "saga moved"]
        return lines if len(ended) == len(self.view["sagas"]) else None

    def sent(self) -> list[str]:
        arrived = self.recorder.events()
        return [one.header("traceparent") for one in arrived if one.header("webhook-id") == self.event_id]


class Place:
    def __init__(self, up: UpProcess, recorder: Recorder) -> None:
        self.up, self.recorder = up, recorder

    def subscribe(self, *paths: str) -> str:
        """An event type with a verified subscription for each path."""
        event_type = new_name("observe")
        for path in paths:
            wanted = {"event_type": event_type, "callback_url": self.recorder.url + path}
            created = self.up.api.good("POST", "/v1/subscriptions", wanted)
            self.up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
        return event_type

    def tell(self, event_type: str, *headers: tuple[str, str]) -> Told:
        return Told(self.up, self.recorder, post(self.up.api, event_type, b"{}", *headers))


@pytest.fixture
def place(up: UpProcess, recorder: Recorder) -> Place:
    return Place(up, recorder)


def test_the_producers_trace_reaches_the_receiver(place: Place) -> None:
    told = place.tell(place.subscribe("/ok/trace"), TRACEPARENT)
    (job,) = told.view["sagas"][0]["attempts"]
    assert told.sent() == [f"00-{TRACE}-{span_id_of(job['id'], 1)}-01"]
    assert told.view["correlation_id"] == TRACE
    assert {line["correlation_id"] for line in told.lines} == {TRACE}


def test_without_a_trace_the_event_is_its_own(place: Place) -> None:
    told = place.tell(place.subscribe("/ok/own"))
    (sent,) = told.sent()
    own = told.event_id.removeprefix("evt_")
    assert sent.split("-")[:2] == ["00", own]
    assert sent.endswith("-01")
    assert {line["correlation_id"] for line in told.lines} == {own}
    assert told.view["correlation_id"] == own


@pytest.mark.parametrize(
    "header",
    ["x", "", f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01", "é" * 60, f"00-{TRACE}-{SPAN}-01-x"],
)
def test_a_trace_that_is_none_is_no_fault(place: Place, header: str) -> None:
    told = place.tell(place.subscribe("/ok/bad"), ("traceparent", header))
    assert told.view["correlation_id"] == told.event_id.removeprefix("evt_")


def test_two_traces_are_none(place: Place) -> None:
    told = place.tell(place.subscribe("/ok/two"), TRACEPARENT, TRACEPARENT)
    assert told.view["correlation_id"] == told.event_id.removeprefix("evt_")


def test_a_repeat_in_another_trace_is_the_same_event(place: Place) -> None:
    key = ("idempotency-key", new_name("key"))
    event_type = place.subscribe("/ok/repeat")
    told = place.tell(event_type, TRACEPARENT, key)
    again = place.up.api.post_event(event_body(event_type), key)
    assert (again.status, again.json()["id"], again.json()["duplicate"]) == (200, told.event_id, True)
    assert told.view["correlation_id"] == TRACE


def test_a_batch_is_in_the_trace_of_its_call(place: Place) -> None:
    event_type = place.subscribe("/ok/batch")
    items = [{"event_type": event_type, "payload": number} for number in range(3)]
    answer = place.up.api.call("POST", "/v1/events/batch", json.dumps({"items": items}).encode(), TRACEPARENT)
    accepted = answer.json()["items"]
    assert len(accepted) == 3
    for item in accepted:
        assert Told(place.up, place.recorder, item["id"]).view["correlation_id"] == TRACE


@pytest.mark.parametrize("form", ["structured", "binary"])
@pytest.mark.parametrize(
    ("own", "kept"),
    [
        (f"00-{'c' * 32}-{SPAN}-01", "c" * 32),  # where the event came from, before how it came here
        (None, TRACE),
        ("nonsense", TRACE),
        ("%ff", TRACE),
    ],
)
def test_a_cloud_event_has_its_own_trace_or_that_of_its_request(
    place: Place, form: str, own: str | None, kept: str
) -> None:
    event_type = place.subscribe("/ok/cloud")
    attributes = {"specversion": "1.0", "id": new_name("id"), "source": "/shop", "type": event_type}
    attributes |= {} if own is None else {"traceparent": own}
    if form == "structured":
        body, kind = json.dumps({**attributes, "data": {}}).encode(), "application/cloudevents+json"
        answer = place.up.api.post_event(body, TRACEPARENT, content_type=kind)
    else:
        headers = [(f"ce-{name}", value) for name, value in attributes.items()]
        answer = place.up.api.post_event(b"{}", TRACEPARENT, *headers)
    assert answer.status == 202, answer
    assert Told(place.up, place.recorder, answer.json()["id"]).view["correlation_id"] == kept


def test_a_trace_attribute_of_another_kind_is_no_fault(place: Place) -> None:
    event = {"specversion": "1.0", "id": new_name("id"), "source": "/shop", "type": "x", "traceparent": 7}
    body = json.dumps(event).encode()
    assert place.up.api.post_event(body, content_type="application/cloudevents+json").status == 202


def test_a_header_of_that_name_is_refused_and_one_from_before_does_not_break_the_trace(place: Place) -> None:
    event_type = place.subscribe("/ok/stored")
    (subscription,) = place.up.api.good("GET", f"/v1/subscriptions?event_type={event_type}")["items"]
    change = json.dumps({"headers": {"TraceParent": "mine"}}).encode()
    refused = place.up.api.call("PATCH", f"/v1/subscriptions/{subscription['id']}", change)
    assert refused.status == 422
    place.up.rows(
        """UPDATE subscriptions SET headers = '{"TraceParent": "mine", "X-Mine": "1"}' WHERE id = %s RETURNING id""",
        [subscription["id"]],
    )
    told = place.tell(event_type, TRACEPARENT)
    (sent,) = told.sent()
    assert sent.split("-")[1] == TRACE
    arrived = place.recorder.events("/ok/stored")[-1]
    assert arrived.header("x-mine") == "1"


def test_each_step_of_an_event_is_one_line(place: Place) -> None:
    told = place.tell(place.subscribe("/ok/lines", "/flaky/1/lines", "/status/500/lines"))
    assert kinds(told.lines) == {"event routed": 1, "attempt": 1 + 2 + 2, "saga moved": 2 + 4 + 4}
    (routed,) = (line for line in told.lines if line["message"] == "event routed")
    assert (routed["sagas"], routed["level"]) == (3, "INFO")
    assert 0 <= routed["routing_delay_ms"] < 60_000
    good, flaky, bad = told.view["sagas"]
    assert moves_of(told.lines, good["id"]) == [("Pending", "InProgress"), ("InProgress", "Completed")]
    retried = [("Pending", "InProgress"), ("InProgress", "PendingRetry"), ("PendingRetry", "InProgress")]
    assert moves_of(told.lines, flaky["id"]) == [*retried, ("InProgress", "Completed")]
    assert moves_of(told.lines, bad["id"]) == [*retried, ("InProgress", "DeadLettered")]


def test_a_line_of_an_attempt_says_all_that_was_decided(place: Place) -> None:
    told = place.tell(place.subscribe("/status/503/said"))
    first, second = (line for line in told.lines if line["message"] == "attempt")
    (saga,) = told.view["sagas"]
    assert [first["job_id"], second["job_id"]] == [attempt["id"] for attempt in saga["attempts"]]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert (first["level"], first["status"], first["error_code"]) == ("WARNING", "Failed", "http_503")
    assert first["span_id"] in told.sent()[0]
    dead = told.lines[-1]
    assert (dead["level"], dead["status"], dead["error_code"]) == ("WARNING", "DeadLettered", "http_503")
    assert dead["dead_letter_id"]
    assert dead["worker_id"] == second["worker_id"]


def samples(up: UpProcess) -> dict[str, float]:
    """Everything on the page, by its name and labels."""
    answer = up.api.with_key(None).get("/metrics")
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE_LATEST)
    families = text_string_to_metric_families(answer.body.decode())
    return {
        sample.name + "".join(f"[{label}]" for label in sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_the_counts_are_those_of_what_happened(place: Place) -> None:
    before = samples(place.up)
    place.tell(place.subscribe("/ok/counts", "/flaky/1/counts", "/status/404/counts"))
    after = samples(place.up)
    grown = {name: many - before[name] for name, many in after.items() if many != before[name]}
    assert {name: many for name, many in grown.items() if "_total" in name} == {
        "hooksaga_events_accepted_total": 1,
        "hooksaga_sagas_created_total": 3,
        "hooksaga_jobs_claimed_total": 5,
        "hooksaga_delivery_succeeded_total": 2,
        "hooksaga_delivery_failed_total[http_5xx]": 1,
        "hooksaga_delivery_failed_total[http_4xx]": 2,
        "hooksaga_sagas_dead_lettered_total": 1,
    }
    assert grown["hooksaga_delivery_latency_seconds_count"] == 5
    assert grown["hooksaga_end_to_end_latency_seconds_count"] == 2
    assert grown["hooksaga_delivery_latency_seconds_bucket[+Inf]"] == 5


def test_what_waits_is_shown_as_it_is_now(place: Place) -> None:
    event_type = place.subscribe("/hang/gauges")
    post(place.up.api, event_type)

    def is_in_flight() -> bool:
        return samples(place.up)["hooksaga_in_flight_jobs"] == 1

    wait_until(is_in_flight, "the POST is in flight")
    assert samples(place.up)["hooksaga_outbox_age_seconds"] == 0
    assert samples(place.up)["hooksaga_oldest_due_saga_age_seconds"] >= 0


def test_the_page_is_there_without_a_database(place: Place) -> None:
    place.up.server.stop()
    try:
        shown = wait_until(lambda: found if GAUGE not in (found := samples(place.up)) else None, "no gauges")
        assert shown["hooksaga_events_accepted_total"] > 0
    finally:
        place.up.server.start()
    wait_until(lambda: GAUGE in samples(place.up), "the gauges are back")


GAUGE = "hooksaga_outbox_age_seconds"


def test_a_failing_request_is_logged_in_its_trace(place: Place) -> None:
    place.up.server.stop()
    try:
        answer = place.up.api.post_event(event_body("x"), TRACEPARENT)
    finally:
        place.up.server.start()
    assert answer.status == 503
    (line,) = (
        one
        for one in json_lines(place.up.log.read_text())
        if one.get("request_id") == answer.json()["request_id"]
    )
    assert (line["message"], line["correlation_id"]) == ("request failed", TRACE)
