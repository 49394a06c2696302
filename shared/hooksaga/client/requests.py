"""Events as API requests. Pure. The bytes are created once, so that all attempts send the same bytes."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from hooksaga.client.errors import EventRefused
from hooksaga.client.events import Attributes, Event, Payload

MAX_BATCH_ITEMS = 500
MAX_BATCH_BYTES = 4 * 1024 * 1024

_KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
_TRACEPARENT = re.compile(r"[!-~]{1,200}")
_OPENING, _CLOSING = b'{"items":[', b"]}"


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def idempotency_key(self) -> str | None:
        return self.headers.get("idempotency-key")


@dataclass(frozen=True, slots=True)
class Item:
    """An event of a batch with its key, and its bytes or its error."""

    event: Event
    body: bytes = b""
    refusal: EventRefused | None = None

    @property
    def key(self) -> str:
        assert self.event.idempotency_key is not None
        return self.event.idempotency_key


def with_key(event: Event, new_key: Callable[[], str]) -> Event:
    return event if event.idempotency_key is not None else replace(event, idempotency_key=new_key())


def event_request(event: Event, traceparent: str | None) -> Request:
    """Return the request of one event. Raises EventRefused for an event that no request can contain."""
    assert event.idempotency_key is not None
    key = {"idempotency-key": _checked_key(event.idempotency_key)}
    return Request("/v1/events", _envelope(event), {**key, **trace_headers(traceparent)})


def batch_item(event: Event) -> Item:
    try:
        key = _checked_key(event.idempotency_key or "")
        body = _envelope(event, idempotency_key=key)
        if len(body) + len(_OPENING) + len(_CLOSING) > MAX_BATCH_BYTES:
            rule = f"an item may have {MAX_BATCH_BYTES} bytes at most, not {len(body)}"
            raise EventRefused(413, "body_too_large", None, rule)
        return Item(event, body)
    except EventRefused as refusal:
        return Item(event, refusal=refusal)


def batch_request(items: Sequence[Item], traceparent: str | None) -> Request:
    body = _OPENING + b",".join(item.body for item in items) + _CLOSING
    return Request("/v1/events/batch", body, trace_headers(traceparent))


def groups_of(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Group the items in order, so that each group fits into one request. Rejected items have no size."""
    group: list[Item] = []
    size = number = 0
    for item in items:
        if item.refusal is None:
            if number == MAX_BATCH_ITEMS or size + len(item.body) > MAX_BATCH_BYTES:
                yield group
                group, number = [], 0
            if number == 0:
                size = len(_OPENING) + len(_CLOSING)
            size, number = size + len(item.body) + len(b","), number + 1
        group.append(item)
    if group:
        yield group


def trace_headers(traceparent: str | None) -> dict[str, str]:
    """Return the header of a trace, or none if it is invalid: tracing never fails a call."""
    return {"traceparent": traceparent} if traceparent and _TRACEPARENT.fullmatch(traceparent) else {}


def _envelope(event: Event, **more: str) -> bytes:
    named = {"event_type": event.event_type, **more}
    if event.tenant_id is not None:
        named["tenant_id"] = event.tenant_id
    if event.ordering_key is not None:
        named["ordering_key"] = event.ordering_key
    attributes = (
        b"" if event.attributes is None else b', "attributes": ' + _attributes_bytes(event.attributes)
    )
    return (
        json.dumps(named).encode()[:-1] + attributes + b', "payload": ' + payload_bytes(event.payload) + b"}"
    )


def _attributes_bytes(attributes: Attributes) -> bytes:
    try:
        return json.dumps(dict(attributes), allow_nan=False).encode()
    except ValueError as error:
        raise EventRefused(422, "invalid_attributes", "attributes", f"attributes: {error}") from None


def payload_bytes(payload: Payload) -> bytes:
    """Return the payload as JSON text. Text is used unchanged.

    Raises EventRefused for text that is not exactly one JSON value, and for a value without a JSON form, such as NaN;
    TypeError for an object that is not a JSON value.
    """
    try:
        if isinstance(payload, str | bytes):
            return _checked_text(payload)
        return json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError:
        raise EventRefused(400, "body_too_deep", "payload", "the payload is nested too deep") from None
    except ValueError as error:  # includes UnicodeError
        hint = " (a str or bytes is taken as JSON text)" if isinstance(payload, str | bytes) else ""
        raise EventRefused(400, "invalid_json", "payload", f"the payload is no JSON: {error}{hint}") from None


def _checked_text(payload: str | bytes) -> bytes:
    """Check for exactly one value: more would become other fields of the event."""
    text = payload.decode() if isinstance(payload, bytes) else payload
    json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    return text.encode()


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _checked_key(key: str) -> str:
    """Reject surrounding spaces: HTTP strips them, and two keys would become one."""
    if not _KEY.fullmatch(key):
        rule = "Idempotency-Key must have 1 to 255 printable ASCII characters, without surrounding spaces"
        raise EventRefused(422, "invalid_idempotency_key", "Idempotency-Key", rule)
    return key
