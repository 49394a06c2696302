"""CloudEvents 1.0 as input, structured or binary (spec §8).

The event's `data` is the payload, as the bytes that came; `type` is the event type; `source` and `id` together are the
idempotency key, as CloudEvents demands of them. The extension `traceparent` is the event's trace, before that of the
request that carries it. Other attributes are read for validity and not kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from shared.core.errors import InvalidInput
from shared.core.event_input import (
    OWN_SOURCE,
    EventDraft,
    check_event_type,
    check_json_syntax,
    check_json_text,
    check_tenant,
    invalid_json,
)
from shared.core.trace import read_traceparent

STRUCTURED_TYPE = "application/cloudevents+json"

_TRACE_HEADER = "ce-traceparent"
_ATTRIBUTE_NAME = re.compile(r"[a-z0-9]{1,50}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json(?:\s*;.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Attributes:
    specversion: str | None
    id: str | None
    source: str | None
    type: str | None
    datacontenttype: str | None
    tenantid: str | None


def read_structured(
    body: bytes, *, max_bytes: int, tenant_id: str | None, traceparent: str | None = None
) -> EventDraft:
    """The event in an `application/cloudevents+json` body. Raises InvalidInput with the attribute and the rule."""
    check_json_text(body, max_bytes)
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise InvalidInput("invalid_cloud_event", "a CloudEvent is a JSON object", status=422) from None
    except msgspec.DecodeError as error:
        raise invalid_json(body, error) from None
    for name in fields:
        if not _ATTRIBUTE_NAME.fullmatch(name) and name != "data_base64":
            raise _invalid(name[:50], "attribute names are lower-case letters and digits")
    if "data_base64" in fields:
        raise _invalid("data_base64", "binary data is not accepted; the data must be JSON")
    attributes = {name: _text(name, value) for name, value in fields.items() if name in _Attributes.__slots__}
    payload = bytes(fields["data"]).decode() if "data" in fields else "null"
    own = _trace_attribute(fields.get("traceparent"))
    return _draft(attributes, payload, tenant_id, own or traceparent)


def _text(name: str, value: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _invalid(name, "must be a string") from None


def _trace_attribute(value: msgspec.Raw | None) -> str | None:
    """No fault of it is a fault of the event."""
    try:
        return None if value is None else read_traceparent([msgspec.json.decode(value, type=str)])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def read_binary(
    headers: Mapping[str, str],
    body: bytes,
    *,
    max_bytes: int,
    tenant_id: str | None,
    traceparent: str | None = None,
) -> EventDraft:
    """The event whose attributes are `ce-…` headers and whose data is the body. headers have lower-case names.

    Raises InvalidInput with the attribute and the rule.
    """
    check_json_text(body, max_bytes)
    check_json_syntax(body)
    attributes = {
        name.removeprefix("ce-"): _header_text(name, value)
        for name, value in headers.items()
        if name.startswith("ce-") and name != _TRACE_HEADER
    }
    own = read_traceparent([headers[_TRACE_HEADER]]) if _TRACE_HEADER in headers else None
    return _draft(attributes, body.decode(), tenant_id, own or traceparent)


def _header_text(name: str, value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise _invalid(name, "is not UTF-8 behind its percent signs") from None


def _draft(
    given: Mapping[str, str], payload: str, tenant_id: str | None, traceparent: str | None
) -> EventDraft:
    attributes = _Attributes(**{name: given.get(name) for name in _Attributes.__slots__})
    if attributes.specversion != "1.0":
        raise _invalid("specversion", 'must be "1.0"')
    if attributes.datacontenttype is not None and not _JSON_TYPE.fullmatch(attributes.datacontenttype):
        raise _invalid("datacontenttype", "the data must be JSON")
    if attributes.source == OWN_SOURCE:
        raise _invalid("source", f'"{OWN_SOURCE}" is for operational events only')
    return EventDraft(
        event_type=check_event_type(_required("type", attributes.type, 100)),
        payload=payload,
        tenant_id=check_tenant(attributes.tenantid, tenant_id),
        source=_required("source", attributes.source, 255),
        external_id=_required("id", attributes.id, 255),
        traceparent=traceparent,
    )


def _required(name: str, value: str | None, most: int) -> str:
    if not value or len(value) > most or _CONTROL.search(value):
        raise _invalid(name, f"must have 1 to {most} characters, none of them a control character")
    return value


def _invalid(attribute: str, rule: str) -> InvalidInput:
    return InvalidInput("invalid_cloud_event", f"{attribute}: {rule}", field=attribute, status=422)
