"""Both clients against the API and its database."""

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hooksaga.client import Event, EventRefused, RetryPolicy, SentEvent, Unavailable
from tests.api.running_system import RunningSystem, new_name
from tests.client.conftest import MakeClient
from tests.client.lossy_proxy import LossyProxy

QUICK = RetryPolicy(attempts=20, first_wait_seconds=0.01, total_seconds=60)


def url_of(running: RunningSystem) -> str:
    return f"http://127.0.0.1:{running.port}"


def stored(running: RunningSystem, event_type: str) -> list[dict[str, Any]]:
    return running.rows(
        "SELECT 'evt_' || replace(webhook_id::text, '-', '') AS id, tenant_id, external_id, payload::text, traceparent"
        " FROM events WHERE event_type = %s ORDER BY id",
        event_type,
    )


def test_an_event_is_stored_and_told(running: RunningSystem, make_client: MakeClient) -> None:
    kind, trace = new_name("sent"), f"00-{'a' * 32}-{'1' * 16}-01"
    client = make_client(url_of(running) + "/", running.key)
    sent = client.send(kind, {"total": 110}, tenant_id="acme", idempotency_key=f"{kind} 1", traceparent=trace)
    assert sent.event_type == kind
    assert not sent.duplicate
    assert abs(sent.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    row = {
        "id": sent.id,
        "tenant_id": "acme",
        "external_id": f"{kind} 1",
        "payload": '{"total":110}',
        "traceparent": trace,
    }
    assert stored(running, kind) == [row]


def test_the_ordering_key_is_stored(running: RunningSystem, make_client: MakeClient) -> None:
    kind, client = new_name("ordered"), make_client(url_of(running), running.key)
    client.send(kind, 1, ordering_key="a")
    client.send(kind, 2)
    client.send_batch([Event(kind, 3, ordering_key="b"), Event(kind, 4)])
    rows = running.rows("SELECT ordering_key AS key FROM events WHERE event_type = %s ORDER BY id", kind)
    assert [row["key"] for row in rows] == ["a", None, "b", None]


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_bad_ordering_key_is_refused(running: RunningSystem, make_client: MakeClient, key: str) -> None:
    client = make_client(url_of(running), running.key)
    with pytest.raises(EventRefused) as refused:
        client.send("keyed", 1, ordering_key=key)
    assert (refused.value.code, refused.value.field) == ("invalid_ordering_key", "ordering_key")


def test_attributes_are_stored(running: RunningSystem, make_client: MakeClient) -> None:
    kind, client = new_name("attributes"), make_client(url_of(running), running.key)
    client.send(kind, 1, attributes={"a": 1.5, "b": "x", "c": False})
    client.send_batch([Event(kind, 2, attributes={"a": 2}), Event(kind, 3)])
    rows = running.rows("SELECT attributes AS given FROM events WHERE event_type = %s ORDER BY id", kind)
    assert [row["given"] for row in rows] == [{"a": 1.5, "b": "x", "c": False}, {"a": 2}, {}]


def test_a_payload_that_does_not_match_is_refused_or_warned_of(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind, client = new_name("schema"), make_client(url_of(running), running.key)
    running.api.good("PUT", f"/v1/event-types/{kind}", {"schema": {"type": "string"}})
    with pytest.raises(EventRefused) as refused:
        client.send(kind, 1)
    assert (refused.value.code, refused.value.field) == ("payload_mismatch", "payload")
    running.api.good("PUT", f"/v1/event-types/{kind}", {"schema": {"type": "string"}, "on_mismatch": "warn"})
    assert client.send(kind, 1).warning == 'payload: the value is not of type "string"'
    assert client.send(kind, '"x"').warning is None


@pytest.mark.parametrize(
    ("attributes", "field"), [({"a b": 1}, "attributes.a b"), ({"a": float("nan")}, "attributes")]
)
def test_bad_attributes_are_refused(
    running: RunningSystem, make_client: MakeClient, attributes: dict[str, float], field: str
) -> None:
    client = make_client(url_of(running), running.key)
    with pytest.raises(EventRefused) as refused:
        client.send("keyed", 1, attributes=attributes)
    assert (refused.value.code, refused.value.field) == ("invalid_attributes", field)


def test_text_is_stored_to_the_byte(running: RunningSystem, make_client: MakeClient) -> None:
    kind, client = new_name("bytes"), make_client(url_of(running), running.key)
    texts = ['{ "total": 1.10 }', '"text"', '{"a": 1, "a": "ž"}']
    for text in texts:
        client.send(kind, text)
        client.send(kind, text.encode())
    assert [row["payload"] for row in stored(running, kind)] == [text for text in texts for _ in range(2)]


def test_the_same_key_gives_the_first_event_again(running: RunningSystem, make_client: MakeClient) -> None:
    kind, client = new_name("key"), make_client(url_of(running), running.key)
    first, again = (client.send(kind, {"a": 1}, idempotency_key=kind) for _ in range(2))
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.id, again.created_at) == (first.id, first.created_at)
    with pytest.raises(EventRefused) as refused:
        client.send(kind, {"a": 2}, idempotency_key=kind)
    assert (refused.value.status, refused.value.code) == (409, "idempotency_conflict")


def test_without_a_key_equal_calls_are_events_of_their_own(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind, client = new_name("twice"), make_client(url_of(running), running.key)
    sent = [client.send(kind, 1) for _ in range(2)]
    assert len({event.id for event in sent}) == 2
    assert [row["external_id"] for row in stored(running, kind)] == [event.idempotency_key for event in sent]


@pytest.mark.parametrize(
    ("event", "status", "code", "field"),
    [
        (Event("", 1), 422, "invalid_event_type", "event_type"),
        (Event("hooksaga.mine", 1), 422, "reserved_event_type", "event_type"),
        (Event("a", 1, tenant_id="of two words"), 422, "invalid_tenant_id", "tenant_id"),
        (Event("a", "x" * 300_000), 400, "invalid_json", "payload"),
        (Event("a", ["x" * 300_000]), 413, "body_too_large", None),
        (Event("a", ["x" * 6_000_000]), 413, "body_too_large", None),
        (Event("a", json.loads("[" * 65 + "]" * 65)), 400, "body_too_deep", None),
        (Event("a", r'"\ud83d"'), 400, "invalid_json", None),
    ],
    ids=["type", "reserved", "tenant", "text", "large", "very-large", "deep", "surrogate"],
)
def test_a_refused_event_is_raised_at_once_with_its_field(
    running: RunningSystem, make_client: MakeClient, event: Event, status: int, code: str, field: str | None
) -> None:
    client = make_client(url_of(running), running.key)
    with running.nothing_stored(), pytest.raises(EventRefused) as refused:
        client.send(event.event_type, event.payload, tenant_id=event.tenant_id)
    assert (refused.value.status, refused.value.code, refused.value.field) == (status, code, field)
    assert refused.value.detail


def test_a_wrong_key_is_refused_once(running: RunningSystem, make_client: MakeClient) -> None:
    statuses: list[int] = []
    client = make_client(url_of(running), "hs_wrong", see_status=statuses.append)
    with pytest.raises(EventRefused, match="unauthorized"):
        client.send("a", 1)
    assert statuses == [401]


def test_a_batch_longer_than_the_limit_is_split_and_answered_in_order(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind, statuses = new_name("batch"), list[int]()
    client = make_client(url_of(running), running.key, see_status=statuses.append)
    events = [Event(kind, number, idempotency_key=f"{kind}-{number // 2}") for number in range(0, 1004, 2)]
    events[3] = Event("", 1)
    events.append(events[0])
    result = client.send_batch(iter(events))
    assert statuses == [200, 200]
    ((place, refusal),) = result.refused
    assert (place, refusal.code, refusal.field) == (3, "invalid_event_type", "event_type")
    sent = [one for one in result.items if isinstance(one, SentEvent)]
    assert [one.duplicate for one in sent] == [False] * 501 + [True]
    assert sent[-1].id == sent[0].id
    rows = {row["id"]: row["payload"] for row in stored(running, kind)}
    payloads = [event.payload for place, event in enumerate(events) if place != 3]
    assert [rows[one.id] for one in sent] == [str(payload) for payload in payloads]
    assert len(rows) == 501


def test_answers_that_get_lost_make_no_second_event(running: RunningSystem, make_client: MakeClient) -> None:
    kind = new_name("lost")
    with LossyProxy(running.port, losses=3) as proxy:
        client = make_client(proxy.url, running.key, retry=QUICK)
        sent = client.send(kind, {"a": 1})
        client.close()
        assert proxy.connections == 4
    assert sent.duplicate
    assert [row["id"] for row in stored(running, kind)] == [sent.id]


def test_a_batch_whose_answers_get_lost_makes_no_second_event(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind = new_name("lost")
    with LossyProxy(running.port, losses=2) as proxy:
        client = make_client(proxy.url, running.key, retry=QUICK)
        result = client.send_batch(Event(kind, number) for number in range(600))
        client.close()
    ids = [one.id for one in result.items if isinstance(one, SentEvent)]
    assert [row["id"] for row in stored(running, kind)] == ids
    assert [row["payload"] for row in stored(running, kind)] == [str(number) for number in range(600)]


def test_after_the_last_attempt_the_events_can_be_sent_again(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind = new_name("again")
    with LossyProxy(running.port, losses=4) as proxy:
        client = make_client(proxy.url, running.key, retry=RetryPolicy(attempts=2, first_wait_seconds=0.01))
        with pytest.raises(Unavailable) as single:
            client.send(kind, 1)
        sent = make_client(url_of(running), running.key).send(
            kind, 1, idempotency_key=single.value.idempotency_key
        )
        with pytest.raises(Unavailable) as whole:
            client.send_batch([Event(kind, 2)])
        result = client.send_batch(whole.value.remaining)
        client.close()
    (item,) = result.items
    assert isinstance(item, SentEvent)
    assert (sent.duplicate, item.duplicate) == (True, True)
    assert [row["id"] for row in stored(running, kind)] == [sent.id, item.id]


def test_503_is_tried_again_until_the_database_takes_events(
    running: RunningSystem, make_client: MakeClient
) -> None:
    kind, statuses = new_name("busy"), list[int]()

    def see(status: int) -> None:
        statuses.append(status)
        if statuses == [503, 503]:
            running.run("SELECT setval('events_id_seq', (SELECT coalesce(max(id), 1) FROM events))")

    client = make_client(url_of(running), running.key, retry=QUICK, see_status=see)
    running.run("SELECT setval('events_id_seq', 9223372036854775807)")
    began = datetime.now(UTC)
    sent = client.send(kind, 1)
    assert statuses == [503, 503, 202]
    assert datetime.now(UTC) - began >= timedelta(seconds=2), "Retry-After is a second each time"
    assert [row["id"] for row in stored(running, kind)] == [sent.id]


def test_threads_may_share_the_blocking_client(running: RunningSystem) -> None:
    from hooksaga.client import HooksagaClient

    kind = new_name("threads")
    with HooksagaClient(url_of(running), running.key) as client:
        threads = [threading.Thread(target=client.send, args=[kind, number]) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(stored(running, kind)) == 20
