"""Requests that the client sends."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.client import Event, EventRefused
from hooksaga.client.requests import (
    MAX_BATCH_BYTES,
    MAX_BATCH_ITEMS,
    batch_item,
    batch_request,
    event_request,
    groups_of,
    payload_bytes,
)
from hooksaga.core.event_input import EventDraft, read_batch, read_event

LIMIT = 10 * 1024 * 1024


def draft_of(event: Event) -> EventDraft:
    """The event as the API reads it from the client's bytes."""
    request = event_request(event, None)
    keys = [request.headers["idempotency-key"]]
    return read_event(request.body, max_bytes=LIMIT, idempotency_keys=keys, tenant_id=None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(json_values)
def test_any_value_arrives_as_it_is(value: Any) -> None:
    assert json.loads(draft_of(Event("a", value, idempotency_key="k")).payload) == value


@pytest.mark.parametrize(
    "text",
    ['{"a": 1.10}', '"text"', "1e400", "9" * 5000, r'{"a":"\u0000","a":2}', '"žluťoučký 😀 \u2028"', "[]"],
)
def test_text_arrives_to_the_byte(text: str) -> None:
    assert draft_of(Event("a", text, idempotency_key="k")).payload == text
    assert draft_of(Event("a", text.encode(), idempotency_key="k")).payload == text


def test_the_fields_of_an_event_arrive() -> None:
    event = Event(
        "order.created",
        [1],
        tenant_id="acme",
        idempotency_key="order 1001",
        ordering_key="顧客 7",
        attributes={"total": 1.5, "vip": True, "name": "顧"},
    )
    assert draft_of(event) == EventDraft(
        "order.created",
        "[1]",
        "acme",
        external_id="order 1001",
        ordering_key="顧客 7",
        attributes='{"total":1.5,"vip":true,"name":"\\u9867"}',
    )
    item = batch_item(event)
    (read,) = read_batch(
        batch_request([item], None).body, max_bytes=LIMIT, item_max_bytes=LIMIT, tenant_id=None
    )
    assert read == draft_of(event)


@pytest.mark.parametrize(
    "payload",
    [
        '1, "tenant_id": "other"',
        '1}, {"event_type": "b", "payload": 1',
        "hello",
        "",
        b"\xff",
        b"\xef\xbb\xbf{}",
        "NaN",
        "[1,]",
        '"\n"',
        "\ud83d",
        math.nan,
        [math.inf],
        {"a": "\ud83d"},
    ],
)
def test_what_is_no_json_is_refused_before_anything_is_sent(payload: Any) -> None:
    """Text of several values would set fields of the event that are not the payload's."""
    with pytest.raises(EventRefused) as refused:
        payload_bytes(payload)
    assert (refused.value.code, refused.value.field, refused.value.status) == ("invalid_json", "payload", 400)
    assert batch_item(Event("a", payload, idempotency_key="k")).refusal is not None


def test_text_that_is_too_deep_to_be_checked_is_refused() -> None:
    with pytest.raises(EventRefused, match="too deep") as refused:
        payload_bytes("[" * 100_000 + "]" * 100_000)
    assert refused.value.code == "body_too_deep"


def test_an_object_that_is_no_json_value_is_a_fault_of_the_program() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        event_request(Event("a", {"at": object()}, idempotency_key="k"), None)


@pytest.mark.parametrize("key", ["", " a", "a ", "a\r\nx-other: 1", "ž", "x" * 256])
def test_a_key_that_no_header_carries_is_refused(key: str) -> None:
    with pytest.raises(EventRefused) as refused:
        event_request(Event("a", 1, idempotency_key=key), None)
    assert (refused.value.status, refused.value.field) == (422, "Idempotency-Key")
    refusal = batch_item(Event("a", 1, idempotency_key=key)).refusal
    assert refusal is not None
    assert refusal.code == "invalid_idempotency_key"


@pytest.mark.parametrize(("trace", "sent"), [("00-ab-cd-01", True), ("a\r\nb: c", False), ("", False)])
def test_a_trace_that_no_header_carries_is_left_out(trace: str, sent: bool) -> None:
    headers = event_request(Event("a", 1, idempotency_key="k"), trace).headers
    assert ("traceparent" in headers) is sent


def test_groups_hold_as_many_items_as_a_request_may() -> None:
    items = [batch_item(Event("a", number, idempotency_key=f"{number}")) for number in range(1001)]
    assert [len(group) for group in groups_of(items)] == [500, 500, 1]
    assert [item for group in groups_of(items) for item in group] == items
    assert list(groups_of([])) == []


def test_groups_fill_a_request_to_the_byte() -> None:
    """The limits are the API's own."""
    bare = len(batch_item(Event("a", b'""', idempotency_key="k")).body)
    frame = len(batch_request([], None).body)

    def item(size: int) -> Event:
        return Event("a", b'"' + b"x" * (size - bare) + b'"', idempotency_key="k")

    half = (MAX_BATCH_BYTES - frame - 1) // 2
    fitting = [batch_item(item(half)), batch_item(item(MAX_BATCH_BYTES - frame - 1 - half))]
    (group,) = groups_of(fitting)
    body = batch_request(group, None).body
    assert len(body) == MAX_BATCH_BYTES
    assert len(read_batch(body, max_bytes=MAX_BATCH_BYTES, item_max_bytes=LIMIT, tenant_id=None)) == 2
    assert [
        len(group) for group in groups_of([*fitting, batch_item(Event("a", 1, idempotency_key="k"))])
    ] == [2, 1]
    one_byte_more = [fitting[0], batch_item(item(MAX_BATCH_BYTES - frame - half))]
    assert [len(group) for group in groups_of(one_byte_more)] == [1, 1]
    alone = batch_item(item(MAX_BATCH_BYTES - frame))
    assert alone.refusal is None
    assert len(batch_request([alone], None).body) == MAX_BATCH_BYTES
    too_large = batch_item(item(MAX_BATCH_BYTES - frame + 1)).refusal
    assert too_large is not None
    assert too_large.code == "body_too_large"


def test_the_limits_are_those_of_the_api() -> None:
    from hooksaga.api.routes import events
    from hooksaga.core import event_input

    assert (MAX_BATCH_ITEMS, MAX_BATCH_BYTES) == (event_input.MAX_BATCH_ITEMS, events.BATCH_MAX_BYTES)
