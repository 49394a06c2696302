"""Parsing of ingest requests. The payload is kept as the received bytes.

The last of several equal names in the envelope counts; this module is its only reader. Equal names inside a payload
are not changed.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import NO_ATTRIBUTES, read_attributes

MAX_DEPTH = 64
MAX_BATCH_ITEMS = 500
MAX_BATCH_DEPTH = 500
"""Limit of the whole batch, higher than that of an item, so that an item that is too deep fails alone."""

Struct = TypeVar("Struct", bound=msgspec.Struct)

MAX_QUOTED = 200
"""Limit of characters of the caller's input in an error."""

RESERVED_PREFIX = "hooksaga."
"""Prefix of operational events. Only hooksaga creates them; anyone may subscribe to them."""

OWN_SOURCE = "hooksaga"
"""Source of operational events, reserved so that their keys never conflict with a producer's."""

EVENT_TYPE_RULE = "1 to 100 characters from A-Z a-z 0-9 _ . : / -"
_EVENT_TYPE = re.compile(r"[A-Za-z0-9_.:/-]{1,100}")
MAX_ORDERING_KEY = 255
ORDERING_KEY_RULE = f"1 to {MAX_ORDERING_KEY} characters, none of them a control character"
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""An unterminated string matches to the end; retrying at each of its quotes would take quadratic time."""
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)
_BRACKETS = re.compile(rb"[\[\]{}]")


class EventDraft(msgspec.Struct, frozen=True):
    """A validated event that is not stored yet. payload is the JSON text as received.

    external_id: the Idempotency-Key, or the id of a CloudEvent; None without a key. traceparent: the valid trace of the
    producer, or None. ordering_key: ordered subscriptions deliver the events of one key in order; None without a key.
    test_subscription_id: the only subscription that receives it, for a test event. attributes: JSON text.
    extracted: attributes of the payload, as the catalogue says, as JSON text.
    cloud_event: JSON text of the attributes of a CloudEvent that no other field holds; None for another event.
    """

    event_type: str
    payload: str
    tenant_id: str = "default"
    source: str = ""
    external_id: str | None = None
    traceparent: str | None = None
    ordering_key: str | None = None
    test_subscription_id: int | None = None
    attributes: str = NO_ATTRIBUTES
    cloud_event: str | None = None
    extracted: str = NO_ATTRIBUTES


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    event_type: str
    payload: msgspec.Raw
    tenant_id: str | None = None
    ordering_key: str | None = None
    attributes: msgspec.Raw | UnsetType = UNSET


class _Item(_Envelope, forbid_unknown_fields=True):
    idempotency_key: str | None = None


class _Batch(msgspec.Struct, forbid_unknown_fields=True):
    items: list[msgspec.Raw]


def read_event(
    body: bytes,
    *,
    max_bytes: int,
    idempotency_keys: Sequence[str],
    tenant_id: str | None,
    traceparent: str | None = None,
) -> EventDraft:
    """Parse and validate the event in a request body.

    idempotency_keys: all values of the Idempotency-Key header. tenant_id: the only tenant that the caller may write
    for; None for all. Raises InvalidInput with the field and the rule.
    """
    check_json_text(body, max_bytes)
    envelope = decode_body(body, _Envelope)
    return _draft(envelope, check_idempotency_key(idempotency_keys), tenant_id, traceparent)


def read_batch(
    body: bytes, *, max_bytes: int, item_max_bytes: int, tenant_id: str | None, traceparent: str | None = None
) -> list[EventDraft | InvalidInput]:
    """Parse the events of `{"items": [...]}`, each with an optional `idempotency_key`.

    An invalid item yields an InvalidInput in its place. Raises InvalidInput for a body that is not a batch.
    """
    check_json_text(body, max_bytes, MAX_BATCH_DEPTH)

    def read(item: bytes) -> EventDraft | InvalidInput:
        try:
            return read_item(item, max_bytes=item_max_bytes, tenant_id=tenant_id, traceparent=traceparent)
        except InvalidInput as error:
            return error

    return [read(item) for item in items_of_batch(body)]


def items_of_batch(body: bytes) -> list[bytes]:
    """Return the JSON text of each item of `{"items": [...]}`. Raises InvalidInput as read_batch does."""
    return checked_items([bytes(item) for item in decode_body(body, _Batch).items])


def checked_items(items: list[bytes]) -> list[bytes]:
    """Return the items. Raises InvalidInput unless there are 1 to MAX_BATCH_ITEMS."""
    if not 1 <= len(items) <= MAX_BATCH_ITEMS:
        rule = f"items must contain 1 to {MAX_BATCH_ITEMS} events, not {len(items)}"
        raise InvalidInput("invalid_batch", rule, field="items", status=422)
    return items


def read_item(
    item: bytes, *, max_bytes: int, tenant_id: str | None, traceparent: str | None = None
) -> EventDraft:
    """Parse one event with an optional `idempotency_key`. Raises InvalidInput with the field and the rule."""
    check_json_text(item, max_bytes)
    envelope = decode_body(item, _Item)
    key = envelope.idempotency_key
    return _draft(envelope, check_idempotency_key([] if key is None else [key]), tenant_id, traceparent)


def decode_body(body: bytes, kind: type[Struct]) -> Struct:
    """Return the JSON object. Raises InvalidInput with the field that breaks its rule."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise _invalid_field(str(error)) from None
    except msgspec.DecodeError as error:
        raise invalid_json(body, error) from None


def _draft(
    envelope: _Envelope, external_id: str | None, tenant_id: str | None, traceparent: str | None
) -> EventDraft:
    return EventDraft(
        event_type=check_event_type(envelope.event_type),
        payload=bytes(envelope.payload).decode(),
        tenant_id=check_tenant(envelope.tenant_id, tenant_id),
        external_id=external_id,
        traceparent=traceparent,
        ordering_key=None if envelope.ordering_key is None else check_ordering_key(envelope.ordering_key),
        attributes=NO_ATTRIBUTES
        if envelope.attributes is UNSET
        else read_attributes(bytes(envelope.attributes)),
    )


def check_json_text(body: bytes, max_bytes: int, max_depth: int = MAX_DEPTH) -> None:
    """Raise InvalidInput for a body that is too large, not UTF-8, or too deeply nested to parse safely."""
    if len(body) > max_bytes:
        raise InvalidInput(
            "body_too_large", f"the body must be at most {max_bytes} bytes, not {len(body)}", status=413
        )
    if not body.strip():
        raise InvalidInput("invalid_json", "the body must be a JSON object, not empty")
    if body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput("body_not_utf8", "the body must be UTF-8 without a byte-order mark")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "body_not_utf8", f"the body must be UTF-8: byte {error.start} is invalid"
        ) from None
    if _is_deeper_than(body, max_depth):
        raise InvalidInput("body_too_deep", f"the body must be nested at most {max_depth} levels deep")


def check_json_syntax(body: bytes) -> None:
    """Raise InvalidInput for invalid JSON, including NaN, which many parsers accept."""
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except msgspec.DecodeError as error:
        raise invalid_json(body, error) from None


def invalid_json(body: bytes, error: msgspec.DecodeError) -> InvalidInput:
    """Return the error for invalid JSON, which includes unpaired surrogate escapes."""
    hint = "; it contains an unpaired surrogate escape, perhaps of a truncated character"
    escapes = body.replace(rb"\\", b"")  # a doubled backslash starts no escape
    lone = hint if _LONE_SURROGATE.search(escapes) else ""
    return InvalidInput("invalid_json", f"the body is not valid JSON: {error}{lone}")


def _is_deeper_than(body: bytes, limit: int) -> bool:
    if body.count(b"[") + body.count(b"{") <= limit:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            return True
    return False


def is_event_type(value: str) -> bool:
    """Return whether a text has the characters of an event type, which are also those of a tenant."""
    return _EVENT_TYPE.fullmatch(value) is not None


def check_event_type(value: str) -> str:
    """Return the value. Raises InvalidInput if it breaks EVENT_TYPE_RULE or has RESERVED_PREFIX."""
    if not is_event_type(value):
        raise InvalidInput(
            "invalid_event_type", f"event_type must have {EVENT_TYPE_RULE}", field="event_type", status=422
        )
    if value.startswith(RESERVED_PREFIX):
        raise InvalidInput(
            "reserved_event_type",
            f"event_type must not begin with {RESERVED_PREFIX}, which is reserved for operational events",
            field="event_type",
            status=422,
        )
    return value


def check_tenant(asked: str | None, allowed: str | None) -> str:
    """Return the tenant to write for. A caller bound to one tenant may omit it. Raises InvalidInput for another one."""
    tenant = asked if asked is not None else (allowed or "default")
    if not is_event_type(tenant):
        raise InvalidInput(
            "invalid_tenant_id", f"tenant_id must have {EVENT_TYPE_RULE}", field="tenant_id", status=422
        )
    if allowed is not None and tenant != allowed:
        raise InvalidInput(
            "tenant_not_allowed",
            "tenant_id must be the caller's own tenant",
            field="tenant_id",
            status=403,
        )
    return tenant


def check_ordering_key(value: str) -> str:
    """Return the value. Raises InvalidInput if it violates ORDERING_KEY_RULE."""
    if not is_ordering_key(value):
        raise InvalidInput(
            "invalid_ordering_key", f"ordering_key has {ORDERING_KEY_RULE}", field="ordering_key", status=422
        )
    return value


def is_ordering_key(value: str) -> bool:
    return 0 < len(value) <= MAX_ORDERING_KEY and not _CONTROL_CHARACTER.search(value)


def check_idempotency_key(values: Sequence[str]) -> str | None:
    """Return the key, or None without the header. Raises InvalidInput for an empty, repeated or unprintable one."""
    if not values:
        return None
    if len(values) > 1:
        raise _bad_key("Idempotency-Key must be sent once")
    if not _KEY.fullmatch(values[0]):
        raise _bad_key(
            "Idempotency-Key must have 1 to 255 printable ASCII characters, without surrounding spaces"
        )
    return values[0]


def _bad_key(message: str) -> InvalidInput:
    return InvalidInput("invalid_idempotency_key", message, field="Idempotency-Key", status=422)


def _invalid_field(message: str) -> InvalidInput:
    """Convert a message of msgspec, which names the field in "… - at `$.name`" or in backquotes."""
    rule, _, place = message.rpartition(" - at `")
    named = re.match(r"\$\.?([^`]*)`$", place) or re.search(r"field `([^`]+)`", message)
    return InvalidInput(
        "invalid_event",
        f"the event is invalid: {shortened(rule or message)}",
        field=shortened(named[1]) if named else "",
        status=422,
    )


def shortened(text: str) -> str:
    """Shorten a name from the caller, which may be as long as the body."""
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
