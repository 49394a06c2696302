"""CloudEvents 1.0 input in structured or binary mode.

Both modes are converted to the same attributes and validated by the same rules.

`data` is the payload, as received; `type` is the event type; `source` and `id` together are the idempotency key, as
CloudEvents requires. The extension `partitionkey` is the ordering key, and `traceparent` takes precedence over the
request's trace. `subject` and other extensions become attributes of the event, as strings: in binary mode they have no
types, and both modes give the same event. `time`, `dataschema`, `datacontenttype`
and what was given for the tenant and the trace are kept beside them, for subscriptions that receive CloudEvents.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import unquote

import msgspec

from hooksaga.core.cloud_event_attributes import HEADER_PREFIX, KEPT, NO_CHARACTER
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import MAX_ATTRIBUTES, MAX_TEXT, attributes_text
from hooksaga.core.event_input import (
    MAX_DEPTH,
    ORDERING_KEY_RULE,
    OWN_SOURCE,
    EventDraft,
    check_event_type,
    check_json_syntax,
    check_json_text,
    check_tenant,
    invalid_json,
    is_ordering_key,
)
from hooksaga.core.media_types import is_json, is_utf8, media_type_of
from hooksaga.core.moments import MOMENT_RULE, read_moment
from hooksaga.core.trace import read_traceparent

NO_DATA = "null"
"""Payload of an event without data."""

MAX_TIME = 100
MAX_MEDIA_TYPE = 200

_ANY_FORMAT = "application/cloudevents"
_REQUIRED = ("specversion", "id", "source", "type")
_DATA_MEMBERS = ("data", "data_base64")
_TRACE = "traceparent"
"""An invalid one does not make the event invalid."""

_ATTRIBUTE_NAME = re.compile(r"[a-z0-9]{1,50}")

_BEGINS_NUMBER = tuple("-0123456789")
_HEADER_VALUE = re.compile(r"(?:[ -$&-~]|%[0-9A-Fa-f]{2})*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def is_binary_mode(media_type: str, header_names: Iterable[str]) -> bool:
    """Return whether a request carries the attributes of an event in its headers. Names are in lower case."""
    names = {f"{HEADER_PREFIX}{name}" for name in _REQUIRED}
    return not media_type.startswith(_ANY_FORMAT) and not names.isdisjoint(header_names)


def read_structured(
    body: bytes, *, max_bytes: int, tenant_id: str | None, traceparent: str | None = None
) -> EventDraft:
    """Read an event from an `application/cloudevents+json` body. Raises InvalidInput with attribute and rule."""
    check_json_text(body, max_bytes, MAX_DEPTH + 1)  # data may be as deep as in binary mode
    members = _members(body)
    for name in members:
        if name not in _DATA_MEMBERS:
            _check_name(name)
    attributes = {
        name: text
        for name, value in members.items()
        if name not in (*_DATA_MEMBERS, _TRACE) and (text := _attribute_text(name, value)) is not None
    }
    own = _trace_attribute(members.get(_TRACE))
    return _draft(attributes, _data(members), tenant_id, own, traceparent)


def _members(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        raise InvalidInput("invalid_cloud_event", "a CloudEvent must be a JSON object", status=422) from None
    except msgspec.DecodeError as error:
        raise invalid_json(body, error) from None


def _attribute_text(name: str, value: msgspec.Raw) -> str | None:
    """Return the canonical text of an attribute; None for null, which means unset."""
    text = bytes(value).decode()
    if text == "null":
        return None
    has_type = name not in _RULES and name not in _DATA_MEMBERS
    if has_type and text in ("true", "false"):
        return text
    if has_type and _is_integer(text):
        return str(int(float(text)))
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        others = ", a boolean or a 32-bit integer" if has_type else ""
        raise _invalid(name, f"must be a string{others}") from None


def _is_integer(json_text: str) -> bool:
    """Return whether the text is a 32-bit integer, including forms such as 7.0 and 7e0."""
    if not json_text.startswith(_BEGINS_NUMBER):
        return False
    number = float(json_text)
    return number.is_integer() and -(2**31) <= number < 2**31


def _trace_attribute(value: msgspec.Raw | None) -> str | None:
    try:
        return None if value is None else read_traceparent([msgspec.json.decode(value, type=str)])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _data(members: Mapping[str, msgspec.Raw]) -> str:
    """Return the payload as JSON text. Base64 data must be JSON, like a body in binary mode."""
    encoded = _attribute_text("data_base64", members["data_base64"]) if "data_base64" in members else None
    if encoded is None:
        return bytes(members["data"]).decode() if "data" in members else NO_DATA
    if "data" in members:
        raise _invalid("data_base64", "must not be sent together with data")
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        raise _invalid("data_base64", "must be base64") from None
    return _json_data(data, len(data))


def read_binary(
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    max_bytes: int,
    tenant_id: str | None,
    traceparent: str | None = None,
) -> EventDraft:
    """Read an event with `ce-…` headers as attributes and the body as data; an empty body is no data.

    headers: all values of all headers, with lower-case names. Raises InvalidInput with the attribute and the rule.
    """
    given = [
        (name.removeprefix(HEADER_PREFIX), value) for name, value in headers if name.startswith(HEADER_PREFIX)
    ]
    own = read_traceparent([value for name, value in given if name == _TRACE])
    attributes = _header_attributes([(name, value) for name, value in given if name != _TRACE])
    content_type = next((value for name, value in headers if name == "content-type"), None)
    if content_type:
        attributes["datacontenttype"] = content_type
    return _draft(attributes, _json_data(body, max_bytes), tenant_id, own, traceparent)


def _header_attributes(given: Sequence[tuple[str, str]]) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for name, value in given:
        if name in attributes:
            raise _invalid(name, "must be sent once")
        if name == "datacontenttype":
            raise _invalid(name, "must be sent as the Content-Type header in binary mode")
        attributes[name] = _header_text(name, value)
    return attributes


def _json_data(data: bytes, max_bytes: int) -> str:
    if not data:
        return NO_DATA
    check_json_text(data, max_bytes)
    check_json_syntax(data)
    return data.decode()


def _header_text(name: str, value: str) -> str:
    """Return the attribute's text after removing quotes and percent-encoding, once.

    Raises InvalidInput for ambiguous text, because two ids must not become one.
    """
    quoted = _QUOTED.fullmatch(value)
    plain = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value
    if not _HEADER_VALUE.fullmatch(plain):
        raise _invalid(name, "must be printable ASCII; percent-encode other characters and % as UTF-8")
    try:
        return unquote(plain, errors="strict")
    except UnicodeDecodeError:
        raise _invalid(name, "must be UTF-8 after percent-decoding") from None


def _draft(
    attributes: Mapping[str, str],
    payload: str,
    tenant_id: str | None,
    own_trace: str | None,
    traceparent: str | None,
) -> EventDraft:
    for name, text in attributes.items():
        _check(name, text)
    if missing := [name for name in _REQUIRED if name not in attributes]:
        raise _invalid(missing[0], f"is required, and {_RULES[missing[0]][1]}")
    return EventDraft(
        event_type=check_event_type(attributes["type"]),
        payload=payload,
        tenant_id=check_tenant(attributes.get("tenantid"), tenant_id),
        source=attributes["source"],
        external_id=attributes["id"],
        traceparent=own_trace or traceparent,
        ordering_key=attributes.get("partitionkey"),
        attributes=_event_attributes(attributes),
        cloud_event=_kept(attributes, own_trace),
    )


def _kept(attributes: Mapping[str, str], own_trace: str | None) -> str:
    traced = attributes if own_trace is None else {**attributes, _TRACE: own_trace}
    return json.dumps({name: traced[name] for name in KEPT if name in traced})


def _event_attributes(attributes: Mapping[str, str]) -> str:
    chosen = {name: text for name, text in attributes.items() if name == "subject" or name not in _RULES}
    if len(chosen) > MAX_ATTRIBUTES:
        raise _invalid(
            list(chosen)[MAX_ATTRIBUTES], f"is one of more than {MAX_ATTRIBUTES} extension attributes"
        )
    return attributes_text(chosen)


def _check_name(name: str) -> None:
    if not _ATTRIBUTE_NAME.fullmatch(name):
        raise _invalid(name[:50], "attribute names must have 1 to 50 lower-case letters and digits")


def _check(name: str, text: str) -> None:
    _check_name(name)
    if rule := broken_rule(name, text):
        raise _invalid(name, rule)


def broken_rule(name: str, text: str) -> str | None:
    """Return the rule that the text of an attribute breaks, or None."""
    if NO_CHARACTER.search(text):
        return "must not contain control characters or noncharacters"
    follows, rule = _RULES.get(name, _EXTENSION_RULE)
    return None if follows(text) else rule


def _is_source(text: str) -> bool:
    return 0 < len(text) <= 255 and text != OWN_SOURCE


def _is_json_in_utf8(content_type: str) -> bool:
    return (
        len(content_type) <= MAX_MEDIA_TYPE and is_json(media_type_of(content_type)) and is_utf8(content_type)
    )


def _is_time(text: str) -> bool:
    try:
        read_moment(text)
    except ValueError:
        return False
    return len(text) <= MAX_TIME


_RULES: dict[str, tuple[Callable[[str], bool], str]] = {
    "specversion": (lambda text: text == "1.0", 'must be "1.0"'),
    "id": (lambda text: 0 < len(text) <= 255, "must have 1 to 255 characters"),
    "source": (
        _is_source,
        f'must have 1 to 255 characters; "{OWN_SOURCE}" is reserved for operational events',
    ),
    "type": (lambda text: 0 < len(text) <= 100, "must have 1 to 100 characters"),
    "datacontenttype": (
        _is_json_in_utf8,
        f"must be JSON in UTF-8: */json or */*+json, at most {MAX_MEDIA_TYPE} characters",
    ),
    "dataschema": (lambda text: 0 < len(text) <= 1000, "must have 1 to 1000 characters"),
    "subject": (lambda text: 0 < len(text) <= MAX_TEXT, f"must have 1 to {MAX_TEXT} characters"),
    "time": (_is_time, f"{MOMENT_RULE}, of at most {MAX_TIME} characters"),
    "tenantid": (bool, "must not be empty"),
    "partitionkey": (is_ordering_key, f"has {ORDERING_KEY_RULE}"),
    "tracestate": (lambda text: len(text) <= 1000, "must have at most 1000 characters"),
}
"""Rules of the attributes that have a meaning of their own. Their values are strings; those of others may be
numbers."""

_EXTENSION_RULE: tuple[Callable[[str], bool], str] = (
    lambda text: len(text) <= MAX_TEXT,
    f"must have at most {MAX_TEXT} characters",
)


def _invalid(attribute: str, rule: str) -> InvalidInput:
    return InvalidInput("invalid_cloud_event", f"{attribute}: {rule}", field=attribute, status=422)
