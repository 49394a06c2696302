"""Search by attributes of events: `name:value`, as a person writes it."""

import json
import re
from dataclasses import dataclass

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import MAX_TEXT, NAME_PATTERN

ATTRIBUTE_PATTERN = f"{NAME_PATTERN.removesuffix('$')}:[^\\u0000-\\u001f\\u007f\\ufffd]{{0,{MAX_TEXT}}}$"
_NAME = re.compile(NAME_PATTERN.strip("^$"))
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:[.][0-9]{1,400})?")


@dataclass(frozen=True, slots=True)
class AttributeFilter:
    """name: None for any name. values: JSON texts, of which one must be equal to the value."""

    name: str | None
    values: tuple[str, ...]


def values_of(text: str) -> tuple[str, ...]:
    """Return the values that a text can mean as JSON texts: a string, and a number or a boolean that is written so."""
    others = (text,) if text in ("true", "false") or _NUMBER.fullmatch(text) else ()
    return (json.dumps(text), *others)


def read_attribute(text: str) -> AttributeFilter:
    """Read `name:value`. Raises InvalidInput."""
    name, colon, value = text.partition(":")
    if not colon or not _NAME.fullmatch(name) or len(value) > MAX_TEXT:
        rule = "attribute must be a name and a value, such as order_id:ORD-10100"
        raise InvalidInput("invalid_parameter", rule, field="attribute", status=422)
    return AttributeFilter(name, values_of(value))
