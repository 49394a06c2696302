"""CloudEvents 1.0 output: the headers and the body of a delivery in structured or binary mode.

Pure, and the same for every attempt: all values are those that were stored with the event.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from hooksaga.core.cloud_event_attributes import (
    HEADER_PREFIX,
    NO_CHARACTER,
    NOT_EXTENSIONS,
    STRUCTURED_TYPE,
)
from hooksaga.core.moments import utc_text

DeliveryFormat = Literal["payload", "cloudevents-structured", "cloudevents-binary"]
"""What a delivery carries: the payload alone, or a CloudEvent."""

PAYLOAD: DeliveryFormat = "payload"
STRUCTURED: DeliveryFormat = "cloudevents-structured"
BINARY: DeliveryFormat = "cloudevents-binary"
FORMATS = (PAYLOAD, STRUCTURED, BINARY)

JSON_TYPE = "application/json"
SOURCE_PREFIX = "/hooksaga/"
"""Source of events that did not come in as CloudEvents, before their tenant."""

CloudEvent = Mapping[str, str | bool | int]
"""The attributes of a CloudEvent by name, in the order in which they are sent."""

_EXTENSION_NAME = re.compile(r"[a-z0-9]+")
_NOT_ENCODED = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_HEADER_TEXT = re.compile(r"[ -~]+")


def cloud_event_of(
    stored: str, *, webhook_id: str, event_type: str, created_at: datetime
) -> dict[str, str | bool | int]:
    """Return the attributes of the event as a CloudEvent.

    stored: JSON text with tenant_id, source, external_id, ordering_key, attributes, and context: what the column
    cloud_event holds, which is null unless the event came in as a CloudEvent. Such an event keeps its own attributes.
    Another one has its webhook id, its tenant as the source, and the time when it was accepted.
    """
    event: dict[str, Any] = json.loads(stored, parse_float=str)
    given: dict[str, str | bool | int] = event["attributes"]
    kept: dict[str, str] | None = event["context"]
    context = {"time": utc_text(created_at), "datacontenttype": JSON_TYPE} if kept is None else kept
    members: dict[str, str | bool | int | None] = {
        "subject": _text_of(given.get("subject", "")),
        "time": context.get("time"),
        "datacontenttype": context.get("datacontenttype"),
        "dataschema": context.get("dataschema"),
        "partitionkey": event["ordering_key"],
        **{name: context[name] for name in ("tenantid", "traceparent", "tracestate") if name in context},
        **{name: _value_of(value) for name, value in given.items() if _is_extension(name)},
    }
    return {
        "specversion": "1.0",
        "id": webhook_id if kept is None else event["external_id"],
        "source": f"{SOURCE_PREFIX}{event['tenant_id']}" if kept is None else event["source"],
        "type": event_type,
        **{name: value for name, value in members.items() if value is not None and _is_sendable(name, value)},
    }


def _is_extension(name: str) -> bool:
    return name not in NOT_EXTENSIONS and _EXTENSION_NAME.fullmatch(name) is not None


def _is_sendable(name: str, value: str | bool | int) -> bool:
    if not isinstance(value, str):
        return True
    return (value != "" or name not in NOT_EXTENSIONS) and not NO_CHARACTER.search(value)


def _value_of(value: str | bool | int) -> str | bool | int:
    """Return a value of a CloudEvents type, which has integers of 32 bits and no other numbers."""
    if isinstance(value, str) or -(2**31) <= value < 2**31:
        return value
    return str(value)


def _text_of(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_headers(delivery_format: DeliveryFormat, event: CloudEvent | None) -> dict[str, str]:
    """Return the headers of a delivery that depend on its format, the content type first. event: for CloudEvents."""
    if event is None or delivery_format == PAYLOAD:
        return {"content-type": JSON_TYPE}
    if delivery_format == STRUCTURED:
        return {"content-type": STRUCTURED_TYPE}
    own_type = str(event.get("datacontenttype", JSON_TYPE))
    return {
        "content-type": own_type if _HEADER_TEXT.fullmatch(own_type) else JSON_TYPE,
        **{
            f"{HEADER_PREFIX}{name}": quote(_text_of(value), safe=_NOT_ENCODED)
            for name, value in event.items()
            if name != "datacontenttype"
        },
    }


def format_body(delivery_format: DeliveryFormat, event: CloudEvent | None, payload: str) -> bytes:
    """Return the body of a delivery: the payload, or in structured mode a JSON object with the payload as its `data`,
    byte for byte."""
    if event is None or delivery_format != STRUCTURED:
        return payload.encode()
    members = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f'{members[:-1]},"data":{payload}}}'.encode()
