"""The catalogue of event types: what is known of a type, and what an event of it has to be.

Pure. The payload of an event is parsed once, and only if its type has a schema or attributes to extract.
"""

import difflib
import heapq
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, Protocol, cast

import msgspec

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import MAX_TEXT, attribute_texts, is_attribute_value, number_text
from hooksaga.core.event_input import shortened

MAX_EVENT_TYPES = 2000
MAX_DESCRIPTION = 2000
MAX_POINTER = 500
MAX_SCHEMA_BYTES = 65_536
MAX_SCHEMAS_BYTES = 8 * 1024 * 1024
"""Limit of all schemas together: each process that accepts events holds them."""

POINTER_PATTERN = "^(/([^~/]|~[01])*)*$"
POINTER_RULE = "a JSON Pointer (RFC 6901), such as /customer/country"
_POINTER = re.compile(f"{POINTER_PATTERN.removesuffix('$')}\\Z")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

AttributeKind = Literal["string", "number", "boolean"]
OnMismatch = Literal["reject", "warn"]
REJECT: OnMismatch = "reject"

NEAREST = 3
"""Known types that an error about an unknown type names."""

_COMPARED = 50
"""Known types that are compared in full: that takes up to 0.3 ms each, and a producer may send many unknown types."""


class Mismatch(msgspec.Struct, frozen=True):
    """Where a payload does not match its schema: a JSON Pointer into the payload, and the rule."""

    pointer: str
    rule: str


class PayloadSchema(Protocol):
    """A compiled schema."""

    def mismatch(self, payload: object) -> Mismatch | None:
        """Return the first mismatch of a payload that read_payload returned."""
        ...


SchemaCompiler = Callable[[str], PayloadSchema]
"""Compiles the JSON text of a schema. Raises InvalidSchema."""


class AttributeRule(msgspec.Struct, frozen=True):
    """An attribute to extract: its name, where it is in the payload, and its kind."""

    name: str
    pointer: str
    kind: AttributeKind


class KnownType(msgspec.Struct, frozen=True):
    """What ingest needs to know of an event type."""

    name: str
    attributes: tuple[AttributeRule, ...] = ()
    schema: PayloadSchema | None = None
    on_mismatch: OnMismatch = REJECT
    archived: bool = False


class Checked(msgspec.Struct, frozen=True):
    """An event that its type accepts: the attributes that were extracted, as JSON text, and what is warned of."""

    extracted: str
    warning: Mismatch | None = None


NOTHING = Checked("{}")


def check_event(known: KnownType, payload: str) -> Checked:
    """Return what follows from the type of an event. payload: valid JSON text.

    Raises InvalidInput `event_type_archived`, or `payload_mismatch` with the pointer and the rule.
    """
    if known.archived:
        message = f"the event type {known.name} is archived and takes no more events"
        raise InvalidInput("event_type_archived", message, field="event_type", status=422)
    if known.schema is None and not known.attributes:
        return NOTHING
    value = read_payload(payload)
    found = None if known.schema is None else known.schema.mismatch(value)
    if found is not None and known.on_mismatch == REJECT:
        raise InvalidInput(
            "payload_mismatch",
            f"payload{found.pointer}: {found.rule}",
            field=shortened(f"payload{found.pointer}"),
            status=422,
        )
    return Checked(extract(known.attributes, value), found)


def unknown_type(name: str, known: Collection[str]) -> InvalidInput:
    """Return the error for a type that the catalogue does not have, with the known types that are most like it."""
    likely = heapq.nlargest(_COMPARED, known, key=lambda other: _equal_ends(name, other))
    nearest = difflib.get_close_matches(name, likely, n=NEAREST)
    hint = f"; known types like it: {', '.join(nearest)}" if nearest else ""
    message = f"the event type {name} is not in the catalogue{hint}"
    return InvalidInput("unknown_event_type", message, field="event_type", status=422)


def _equal_ends(name: str, other: str) -> int:
    """Return how many characters two names share at their beginnings and ends, which a typing error usually leaves
    unchanged."""
    return _equal_beginning(name, other) + _equal_beginning(name[::-1], other[::-1])


def _equal_beginning(name: str, other: str) -> int:
    pairs = enumerate(zip(name, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(name), len(other)))


def read_payload(text: str) -> Any:
    """Parse a payload with exact numbers: integers of up to 18 digits as int, other numbers as Decimal."""
    return json.loads(text, parse_int=_integer, parse_float=_decimal)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 18 else Decimal(text)


def _decimal(text: str) -> Decimal | float:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits
        return float(text)


def extract(rules: Sequence[AttributeRule], payload: object) -> str:
    """Return the attributes of a payload as JSON text. A value that is missing, of another kind, or not allowed as an
    attribute is left out. Of several rules with one name, the first counts that finds a value."""
    found: dict[str, str] = {}
    for rule in rules:
        value = value_at(payload, rule.pointer)
        text = _TEXT_OF[rule.kind](value)
        if text is not None:
            found.setdefault(rule.name, text)
    return attribute_texts(found)


def value_at(payload: object, pointer: str) -> object:
    """Return the value at a JSON Pointer; None if there is none."""
    value: Any = payload
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = cast("Mapping[str, Any]", value).get(name)
        elif isinstance(value, list) and _INDEX.fullmatch(name):
            items = cast("list[Any]", value)
            value = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return value


def _string_text(value: object) -> str | None:
    return json.dumps(value) if isinstance(value, str) and is_attribute_value(value) else None


def _number_text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return number_text(str(value))


def _boolean_text(value: object) -> str | None:
    return json.dumps(value) if isinstance(value, bool) else None


_TEXT_OF: Mapping[AttributeKind, Callable[[object], str | None]] = {
    "string": _string_text,
    "number": _number_text,
    "boolean": _boolean_text,
}


def is_pointer(text: str) -> bool:
    return len(text) <= MAX_POINTER and _POINTER.match(text) is not None


def pointer_of(path: Sequence[str | int]) -> str:
    """Return the JSON Pointer of a path, cut to a length that an error can carry."""
    text = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
