"""Events in batches and as CloudEvents: stored once, to the byte, or refused with nothing stored."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name

STRUCTURED = "application/cloudevents+json"


def batch(api: Api, *items: dict[str, Any]) -> list[dict[str, Any]]:
    return api.good("POST", "/v1/events/batch", {"items": list(items)})["items"]


def test_a_batch_is_answered_in_order_and_a_bad_item_alone(api: Api, running: RunningSystem) -> None:
    kind = new_name("batch")
    good, repeated = (
        {"event_type": kind, "payload": 1},
        {"event_type": kind, "payload": 2, "idempotency_key": "k"},
    )
    first, bad, second, again, other = batch(
        api, good, {"event_type": "", "payload": 1}, repeated, repeated, {**repeated, "payload": 3}
    )
    assert (first["duplicate"], second["duplicate"], again["duplicate"]) == (False, False, True)
    assert again["id"] == second["id"]
    assert bad["error"]["code"] == "invalid_event_type"
    assert other["error"]["code"] == "idempotency_conflict"
    stored = running.rows("SELECT payload::text FROM events WHERE event_type = %s ORDER BY id", kind)
    assert [row["payload"] for row in stored] == ["1", "2"]


def test_a_batch_and_a_single_call_share_their_keys(api: Api) -> None:
    kind = new_name("batch")
    (item,) = batch(api, {"event_type": kind, "payload": {}, "idempotency_key": "shared"})
    body = json.dumps({"event_type": kind, "payload": {}}).encode()
    answer = api.post_event(body, ("idempotency-key", "shared"))
    assert (answer.status, answer.json()["id"]) == (200, item["id"])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{}", 422, "invalid_event"),
        (b'{"items": []}', 422, "invalid_batch"),
        (b'{"items": [1, NaN]}', 400, "invalid_json"),
        (b'{"items": ["' + b"x" * (4 * 1024 * 1024) + b'"]}', 413, "body_too_large"),
    ],
)
def test_what_is_no_batch_stores_nothing(
    api: Api, running: RunningSystem, body: bytes, status: int, code: str
) -> None:
    with running.nothing_stored():
        answer = api.call("POST", "/v1/events/batch", body)
    assert (answer.status, answer.json()["code"]) == (status, code)


def test_a_key_of_one_tenant_cannot_batch_for_another(api: Api, running: RunningSystem) -> None:
    bound = api.with_key(running.new_key("events:write", tenant_id="acme"))
    kind = new_name("batch")
    own, foreign = batch(
        bound, {"event_type": kind, "payload": 1}, {"event_type": kind, "payload": 1, "tenant_id": "other"}
    )
    assert own["duplicate"] is False
    assert foreign["error"]["code"] == "tenant_not_allowed"
    assert [
        row["tenant_id"] for row in running.rows("SELECT tenant_id FROM events WHERE event_type = %s", kind)
    ] == ["acme"]


def test_a_structured_cloud_event_is_stored_by_its_data(api: Api, running: RunningSystem) -> None:
    kind = new_name("cloud")
    body = f'{{"specversion":"1.0","id":"1","source":"{kind}","type":"{kind}","data": {{"a":1.10, "a":2}}}}'.encode()
    first = api.post_event(body, content_type=STRUCTURED)
    again = api.post_event(body, content_type=STRUCTURED)
    assert (first.status, again.status) == (202, 200)
    assert first.json()["id"] == again.json()["id"]
    (row,) = running.rows("SELECT payload::text, source, external_id FROM events WHERE event_type = %s", kind)
    assert row == {"payload": '{"a":1.10, "a":2}', "source": kind, "external_id": "1"}


def test_a_binary_cloud_event_is_stored_by_its_body(api: Api, running: RunningSystem) -> None:
    kind = new_name("cloud")
    headers = (("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", kind), ("ce-type", kind))
    assert api.post_event(b' {"a": 1.10} ', *headers).status == 202
    assert api.post_event(b"[]", *headers).json()["code"] == "idempotency_conflict"
    (row,) = running.rows("SELECT payload::text FROM events WHERE event_type = %s", kind)
    assert row["payload"] == ' {"a": 1.10} '


DATA = {"data": {"x": 1}}
MODES: dict[str, tuple[dict[str, Any], int]] = {
    "no content type": ({**DATA, "datacontenttype": None}, 202),
    "no tenant": ({**DATA, "tenantid": None}, 202),
    "a type with a suffix": ({**DATA, "datacontenttype": "application/vnd.x+json"}, 202),
    "no data": ({}, 202),
    "an id with a space and a sign": ({**DATA, "id": "Euro \u20ac"}, 202),
    "a time that is none": ({**DATA, "time": "yesterday"}, 422),
    "data that is no JSON": ({**DATA, "datacontenttype": "text/plain"}, 422),
}


@pytest.mark.parametrize(("members", "status"), MODES.values(), ids=MODES)
def test_both_modes_take_the_same_cloud_events(
    api: Api, running: RunningSystem, members: dict[str, Any], status: int
) -> None:
    """The second mode's event is a repeat of the first one's: the same key and the same payload."""
    kind = new_name("cloud")
    attributes: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": kind, "type": kind} | members
    data = attributes.pop("data", None)
    with_data = attributes if data is None else {**attributes, "data": data}
    texts = {name: quote(value) for name, value in attributes.items() if value is not None}
    content_type = attributes.get("datacontenttype") or "application/json"
    texts.pop("datacontenttype", None)
    body = b"" if data is None else json.dumps(data).encode()
    structured = api.post_event(json.dumps(with_data).encode(), content_type=STRUCTURED)
    binary = api.post_event(
        body, *[(f"ce-{name}", text) for name, text in texts.items()], content_type=content_type
    )
    if status == 202:
        assert (structured.status, binary.status) == (202, 200), (structured, binary)
        assert structured.json()["id"] == binary.json()["id"]
    else:
        assert structured.status == status
        assert binary.status in (status, 415)
        assert running.rows("SELECT id FROM events WHERE event_type = %s", kind) == []


def test_an_attribute_in_a_header_that_is_no_ascii_is_refused(api: Api, running: RunningSystem) -> None:
    kind = new_name("cloud")
    headers = [("ce-specversion", "1.0"), ("ce-source", kind), ("ce-type", kind)]
    with running.nothing_stored():
        for value in ("\u20ac".encode(), b"\xe9", b"100%"):
            assert_problem(
                api.post_event(b"{}", *headers, ("ce-id", value)), 422, "invalid_cloud_event", "id"
            )
        twice = api.post_event(b"{}", *headers, ("ce-id", "1"), ("ce-id", "2"))
        assert_problem(twice, 422, "invalid_cloud_event", "id")
        incomplete = api.post_event(b'{"event_type":"t","payload":1}', ("ce-id", "1"))
        assert_problem(incomplete, 422, "invalid_cloud_event", "specversion")


def test_the_same_id_of_two_sources_is_two_events(api: Api) -> None:
    kind = new_name("cloud")
    ids = set()
    for source in (f"{kind}/a", f"{kind}/b"):
        body = json.dumps({"specversion": "1.0", "id": "1", "source": source, "type": kind}).encode()
        ids.add(api.post_event(body, content_type=STRUCTURED).json()["id"])
    assert len(ids) == 2


def test_a_cloud_event_with_a_second_key_is_refused(api: Api, running: RunningSystem) -> None:
    body = json.dumps({"specversion": "1.0", "id": "1", "source": "/s", "type": "a"}).encode()
    with running.nothing_stored():
        answer = api.post_event(body, ("idempotency-key", "x"), content_type=STRUCTURED)
    assert_problem(answer, 422, "invalid_idempotency_key", "Idempotency-Key")


def test_cloud_event_batches_are_refused_by_their_type(api: Api, running: RunningSystem) -> None:
    with running.nothing_stored():
        answer = api.post_event(b"[]", content_type="application/cloudevents-batch+json")
    assert_problem(answer, 415, "unsupported_media_type")
