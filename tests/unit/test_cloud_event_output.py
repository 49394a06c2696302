"""An event as a CloudEvent: read by the SDK of CloudEvents, and again by hooksaga's own input."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from hooksaga.core.cloud_event_output import (
    BINARY,
    PAYLOAD,
    STRUCTURED,
    DeliveryFormat,
    cloud_event_of,
    format_body,
    format_headers,
)
from hooksaga.core.cloud_events import read_binary, read_structured
from hooksaga.core.event_input import EventDraft

BOTH = (STRUCTURED, BINARY)
CREATED_AT = datetime(2026, 3, 1, 8, 0, 0, 118_000, tzinfo=UTC)
WEBHOOK_ID = "evt_01900000000070008000000000000001"

GIVEN = {
    "specversion": "1.0",
    "id": 'Euro € "quoted" 100%',
    "source": "/shops/berlin",
    "type": "order.created",
    "subject": "訂單 😀",
    "time": "2026-03-01T09:00:00.10+01:00",
    "datacontenttype": "application/vnd.order+json",
    "dataschema": "https://example.com/order.json",
    "tenantid": "acme",
    "partitionkey": "customer 7",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "a=1",
    "region": " eu ",
    "empty": "",
}


def stored(draft: EventDraft) -> str:
    """What the database returns of the stored event."""
    return json.dumps(
        {
            "tenant_id": draft.tenant_id,
            "source": draft.source,
            "external_id": draft.external_id,
            "ordering_key": draft.ordering_key,
            "attributes": json.loads(draft.attributes),
            "context": None if draft.cloud_event is None else json.loads(draft.cloud_event),
        }
    )


def sent(draft: EventDraft, delivery_format: DeliveryFormat) -> HTTPMessage:
    event = cloud_event_of(
        stored(draft), webhook_id=WEBHOOK_ID, event_type=draft.event_type, created_at=CREATED_AT
    )
    return HTTPMessage(
        headers=format_headers(delivery_format, event),
        body=format_body(delivery_format, event, draft.payload),
    )


def attributes_of(event: BaseCloudEvent) -> dict[str, Any]:
    return dict(event.get_attributes())


def received(**more: Any) -> EventDraft:
    body = json.dumps({**GIVEN, "data": {"n": 1}, **more}).encode()
    return read_structured(body, max_bytes=10_000, tenant_id=None)


def own(attributes: dict[str, Any], **more: Any) -> EventDraft:
    return EventDraft("order.created", "[1.10]", attributes=json.dumps(attributes), **more)


@pytest.mark.parametrize("delivery_format", BOTH)
def test_a_cloud_event_keeps_its_attributes(delivery_format: DeliveryFormat) -> None:
    told = attributes_of(from_http_event(sent(received(), delivery_format)))
    assert told.pop("time") == datetime(2026, 3, 1, 8, 0, 0, 100_000, tzinfo=UTC)
    assert told == {name: value for name, value in GIVEN.items() if name != "time"}


def test_both_modes_come_back_as_the_same_event() -> None:
    first = received()
    structured, binary = (sent(first, one) for one in BOTH)
    headers = [(name.lower(), value) for name, value in binary.headers.items()]
    limits = {"max_bytes": 10_000, "tenant_id": None}
    assert read_structured(structured.body, **limits) == first
    assert read_binary(headers, binary.body, **limits) == first


@pytest.mark.parametrize("unset", ["subject", "time", "datacontenttype", "dataschema", "partitionkey"])
@pytest.mark.parametrize("delivery_format", BOTH)
def test_what_a_cloud_event_did_not_have_is_not_added(unset: str, delivery_format: DeliveryFormat) -> None:
    event = cloud_event_of(
        stored(received(**{unset: None})), webhook_id=WEBHOOK_ID, event_type="a", created_at=CREATED_AT
    )
    assert unset not in event
    if unset == "datacontenttype":
        assert format_headers(BINARY, event)["content-type"] == "application/json"


@pytest.mark.parametrize("payload", ['{ "total": 1.10, "total":  2 }', "null", '"訂單"', "1e999"])
def test_the_bytes_of_the_payload_are_not_changed(payload: str) -> None:
    draft = EventDraft("order.created", payload)
    assert sent(draft, BINARY).body == payload.encode()
    assert sent(draft, STRUCTURED).body.endswith(b',"data":' + payload.encode() + b"}")
    assert format_body(PAYLOAD, None, payload) == payload.encode()


def test_a_structured_body_is_compact_and_in_utf8() -> None:
    draft = own({"city": "Zürich", "subject": "訂單"})
    assert sent(draft, STRUCTURED).body.decode() == (
        f'{{"specversion":"1.0","id":"{WEBHOOK_ID}","source":"/hooksaga/default","type":"order.created",'
        '"subject":"訂單","time":"2026-03-01T08:00:00.118000Z","datacontenttype":"application/json",'
        '"city":"Zürich","data":[1.10]}'
    )


@pytest.mark.parametrize(
    ("delivery_format", "has_event"),
    [(PAYLOAD, True), (PAYLOAD, False), (STRUCTURED, False), (BINARY, False)],
)
def test_without_a_cloud_event_or_its_format_the_payload_is_sent_alone(
    delivery_format: DeliveryFormat, has_event: bool
) -> None:
    event = cloud_event_of(stored(own({})), webhook_id=WEBHOOK_ID, event_type="a", created_at=CREATED_AT)
    given = event if has_event else None
    assert format_headers(delivery_format, given) == {"content-type": "application/json"}
    assert format_body(delivery_format, given, "1.10") == b"1.10"


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (2**31 - 1, 2**31 - 1),
        (2**31, "2147483648"),
        (-(2**31), -(2**31)),
        (-(2**31) - 1, "-2147483649"),
    ],
)
def test_an_integer_of_more_than_32_bits_is_sent_as_text(number: int, value: str | int) -> None:
    assert json.loads(sent(own({"n": number}), STRUCTURED).body)["n"] == value


@pytest.mark.parametrize("delivery_format", BOTH)
def test_another_event_is_described_by_hooksaga(delivery_format: DeliveryFormat) -> None:
    draft = own({}, tenant_id="acme", source="", external_id="order-1001", ordering_key="customer 7")
    told = attributes_of(from_http_event(sent(draft, delivery_format)))
    assert told == {
        "specversion": "1.0",
        "id": WEBHOOK_ID,
        "source": "/hooksaga/acme",
        "type": "order.created",
        "time": CREATED_AT,
        "datacontenttype": "application/json",
        "partitionkey": "customer 7",
    }


def test_attributes_become_extensions_where_their_names_allow_it() -> None:
    given = {
        "subject": True,
        "region": "eu",
        "express": False,
        "count": 7,
        "customerid": 820982911946154508,
        "total": 19.5,
        "order_id": "A-1",
        "Country": "DE",
        "id": "x",
        "data": "x",
        "time": "x",
        "control": "\x85",
    }
    told = json.loads(sent(own(given), STRUCTURED).body)
    known = ("specversion", "id", "source", "type", "time", "datacontenttype", "data")
    assert {name: value for name, value in told.items() if name not in known} == {
        "subject": "true",
        "region": "eu",
        "express": False,
        "count": 7,
        "customerid": "820982911946154508",
        "total": "19.5",
    }
    assert told["id"] == WEBHOOK_ID


def test_header_values_are_percent_encoded() -> None:
    headers = sent(received(), BINARY).headers
    assert headers["ce-id"] == "Euro%20%E2%82%AC%20%22quoted%22%20100%25"
    assert headers["ce-region"] == "%20eu%20"
    assert headers["ce-tracestate"] == "a=1"
    assert "ce-datacontenttype" not in headers


def test_a_content_type_that_no_header_can_carry_is_replaced() -> None:
    draft = received(datacontenttype='application/json; v="ü"')
    assert sent(draft, BINARY).headers["content-type"] == "application/json"
