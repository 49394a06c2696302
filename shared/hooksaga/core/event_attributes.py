"""Attributes of an event: names and values that the producer gives beside the payload, for filters.

The database checks the same rules (sql/functions/refuse_wrong_attributes.sql). A test compares both.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, cast

from hooksaga.core.errors import InvalidInput

MAX_ATTRIBUTES = 20
MAX_TEXT = 200
MAX_NUMBER = 10**30
MAX_DECIMAL_PLACES = 400

NAME_RULE = "1 to 64 characters from A-Z a-z 0-9 _ . -"
NAME_PATTERN = "^[A-Za-z0-9_.-]{1,64}$"
VALUE_RULE = (
    f"a string of at most {MAX_TEXT} characters without control characters, a number from -10^30 to 10^30 with at "
    f"most {MAX_DECIMAL_PLACES} decimal places, or a boolean"
)

NO_ATTRIBUTES = "{}"

_NAME = re.compile(NAME_PATTERN.strip("^$"))
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")


class ExactNumber(str):
    """The text of a JSON number, which is kept: 1.10 stays 1.10."""

    __slots__ = ()


def read_exact(json_text: str | bytes) -> Any:
    """Parse valid JSON, with an ExactNumber for each number."""
    return json.loads(json_text, parse_int=ExactNumber, parse_float=ExactNumber)


def read_attributes(json_text: bytes) -> str:
    """Return the attributes of a request as JSON text for the database; null is none.

    json_text: a valid JSON value. Of several equal names the last counts. Raises InvalidInput `invalid_attributes` with
    the attribute and the rule.
    """
    given: Any = read_exact(json_text)
    if given is None:
        return NO_ATTRIBUTES
    if not isinstance(given, dict):
        raise _invalid(None, f"must be an object of at most {MAX_ATTRIBUTES} names")
    return attributes_text(cast("dict[str, Any]", given))


def attributes_text(given: Mapping[str, Any]) -> str:
    """Return these attributes as JSON text. Raises InvalidInput `invalid_attributes`."""
    if len(given) > MAX_ATTRIBUTES:
        raise _invalid(None, f"must have at most {MAX_ATTRIBUTES} names, not {len(given)}")
    for name, value in given.items():
        if not is_attribute_name(name):
            raise _invalid(name, f"a name must have {NAME_RULE}")
        if not is_value(value):
            raise _invalid(name, f"must be {VALUE_RULE}")
    return attribute_texts({name: _value_text(value) for name, value in given.items()})


def attribute_texts(values: Mapping[str, str]) -> str:
    """Return attributes as JSON text, of the JSON texts of their values."""
    return f"{{{','.join(f'{json.dumps(name)}:{text}' for name, text in values.items())}}}"


def is_attribute_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_attribute_value(text: str) -> bool:
    """Return whether a string can be the value of an attribute."""
    return len(text) <= MAX_TEXT and not _CONTROL_CHARACTER.search(text)


def number_text(text: str) -> str | None:
    """Return the text of a JSON number if it can be the value of an attribute, otherwise None."""
    return text if _is_number(text) else None


def all_attributes(given: str, extracted: str) -> str:
    """Return the attributes that an event has, as JSON text: those that were given, and those that were extracted
    from its payload under other names. The database has the same rule (sql/functions/attributes_of_event.sql)."""
    if extracted == NO_ATTRIBUTES:
        return given
    both: dict[str, Any] = {
        **read_exact(extracted),
        **read_exact(given),
    }
    return attribute_texts({name: _value_text(value) for name, value in both.items()})


def values_of(attributes: str) -> dict[str, str | bool | Decimal]:
    """Return the values of stored attributes, with exact numbers."""
    return json.loads(attributes, parse_int=Decimal, parse_float=Decimal)


def values_by_name(attributes: str) -> dict[str, str]:
    """Return the values of stored attributes as text, for display."""
    given: dict[str, Any] = read_exact(attributes)
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}


def _value_text(value: str | bool) -> str:
    return value if isinstance(value, ExactNumber) else json.dumps(value)


def is_value(value: object) -> bool:
    """Return whether a value of read_exact can be the value of an attribute."""
    if isinstance(value, ExactNumber):
        return _is_number(value)
    return is_attribute_value(value) if isinstance(value, str) else isinstance(value, bool)


def _is_number(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of more than 18 digits
        return False
    places = -cast("int", number.as_tuple().exponent)
    size = number.copy_abs()  # abs() rounds to 28 digits
    return places <= MAX_DECIMAL_PLACES and number.adjusted() <= 30 and size <= MAX_NUMBER


def _invalid(name: str | None, rule: str) -> InvalidInput:
    place = "attributes" if name is None else f"attributes.{name[:MAX_TEXT]}"
    return InvalidInput("invalid_attributes", f"{place}: {rule}", field=place, status=422)
