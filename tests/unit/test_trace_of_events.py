"""An event keeps the trace that it came in, however it is sent."""

import json

import pytest

from hooksaga.core.cloud_events import read_binary, read_structured
from hooksaga.core.event_input import EventDraft, read_batch, read_event

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


def test_an_event_is_in_the_trace_of_its_request() -> None:
    """Lost on the way in, it is lost for the producer, the receiver and whoever looks for the one by the other."""
    alone = read_event(
        b'{"event_type": "a", "payload": 1}',
        max_bytes=99,
        idempotency_keys=[],
        tenant_id=None,
        traceparent=TRACE,
    )
    (item,) = read_batch(
        b'{"items": [{"event_type": "a", "payload": 1}]}',
        max_bytes=99,
        item_max_bytes=99,
        tenant_id=None,
        traceparent=TRACE,
    )
    assert isinstance(item, EventDraft)
    assert alone.traceparent == item.traceparent == TRACE


@pytest.mark.parametrize(("own", "expected"), [(OTHER, OTHER), (None, TRACE), ("no trace", TRACE)])
def test_a_cloud_events_own_trace_goes_before_that_of_its_request(own: str | None, expected: str) -> None:
    attributes = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
    given = {} if own is None else {"traceparent": own}
    structured = read_structured(
        json.dumps({**attributes, **given}).encode(), max_bytes=999, tenant_id=None, traceparent=TRACE
    )
    headers = {f"ce-{name}": value for name, value in {**attributes, **given}.items()}
    binary = read_binary([*headers.items()], b"1", max_bytes=999, tenant_id=None, traceparent=TRACE)
    assert structured.traceparent == binary.traceparent == expected


@pytest.mark.parametrize("own", [1, None, ["x"]])
def test_a_trace_attribute_that_is_no_text_is_left_out(own: object) -> None:
    body = {"specversion": "1.0", "id": "1", "source": "s", "type": "t", "traceparent": own}
    draft = read_structured(json.dumps(body).encode(), max_bytes=999, tenant_id=None, traceparent=TRACE)
    assert draft.traceparent == TRACE
