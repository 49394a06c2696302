"""One bad item of a batch is answered in its place and takes nobody with it."""

import json

import pytest

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import MAX_BATCH_ITEMS, EventDraft, read_batch

GOOD = '{"event_type": "a.b", "payload": {"n": 1.10}, "idempotency_key": "k1"}'


def read(body: str, tenant_id: str | None = None):
    return read_batch(body.encode(), max_bytes=1_000_000, item_max_bytes=200, tenant_id=tenant_id)


def test_each_item_keeps_its_payload_and_its_key() -> None:
    (draft,) = read(f'{{"items": [{GOOD}]}}')
    assert draft == EventDraft(event_type="a.b", payload='{"n": 1.10}', external_id="k1")


@pytest.mark.parametrize(
    ("item", "code"),
    [
        ('{"event_type": "", "payload": 1}', "invalid_event_type"),
        ('{"event_type": "a"}', "invalid_event"),
        ('{"event_type": "a", "payload": 1, "other": 2}', "invalid_event"),
        ('{"event_type": "a", "payload": 1, "idempotency_key": ""}', "invalid_idempotency_key"),
        ('{"event_type": "a", "payload": 1, "tenant_id": "has space"}', "invalid_tenant_id"),
        ('{"event_type": "a", "payload": "' + "x" * 200 + '"}', "body_too_large"),
        ("[" * 65 + "]" * 65, "body_too_deep"),
        ("7", "invalid_event"),
    ],
)
def test_a_bad_item_among_good_ones_is_answered_alone(item: str, code: str) -> None:
    first, second, third = read(f'{{"items": [{GOOD}, {item}, {GOOD}]}}')
    assert isinstance(first, EventDraft)
    assert isinstance(third, EventDraft)
    assert isinstance(second, InvalidInput)
    assert second.code == code


@pytest.mark.parametrize("count", [0, MAX_BATCH_ITEMS + 1])
def test_a_batch_has_a_number_of_items(count: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(json.dumps({"items": [{"event_type": "a", "payload": 1}] * count}))
    assert (refused.value.code, refused.value.field) == ("invalid_batch", "items")


@pytest.mark.parametrize("body", ["{}", "[]", '{"items": 1}', '{"items": [], "more": 1}', '{"items": [NaN]}'])
def test_what_is_no_batch_is_refused_whole(body: str) -> None:
    with pytest.raises(InvalidInput):
        read(body)


def test_a_batch_may_be_full() -> None:
    items = [{"event_type": "a", "payload": 1}] * MAX_BATCH_ITEMS
    assert (
        len(
            read_batch(
                json.dumps({"items": items}).encode(), max_bytes=1_000_000, item_max_bytes=200, tenant_id=None
            )
        )
        == MAX_BATCH_ITEMS
    )


def test_a_key_bound_to_a_tenant_writes_each_item_for_it_and_for_no_other() -> None:
    mine, other = read(
        '{"items": [{"event_type": "a", "payload": 1}, {"event_type": "a", "payload": 1, "tenant_id": "b"}]}',
        tenant_id="a",
    )
    assert isinstance(mine, EventDraft)
    assert mine.tenant_id == "a"
    assert isinstance(other, InvalidInput)
    assert other.code == "tenant_not_allowed"
