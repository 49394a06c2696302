"""Patterns of a filter: each is compiled to a condition of jsonpath, and compares a value in Python in the same way.

Strings are compared by code points, numbers by value; a pattern never matches a value of another type. The conditions
read what sql/functions/compared_attributes.sql makes of attributes: "~name" is a string in reverse, "^name" one with
its letters A to Z in lower case. So every condition is a comparison, and none compiles a regular expression.
"""

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

Value = str | bool | Decimal
"""Value of an attribute. Booleans are compared by identity, because Python has 1 == True."""

Json = str | bool | int | float

ROOT = "$"
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

COMPARISONS = ("=", "<", "<=", ">", ">=")


class Pattern(Protocol):
    def path(self, name: str, root: str = ROOT) -> str:
        """Return the condition on the attribute of this name: true, false or unknown, never an error."""
        ...

    def matches(self, value: Value | None) -> bool:
        """Return whether it matches a value; None for an attribute that the event does not have."""
        ...


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def literal(value: Json) -> str:
    """Return the value as a literal of jsonpath, whose strings and numbers are those of JSON."""
    return json.dumps(value)


def _at(root: str, name: str, mark: str = "") -> str:
    return f'{root}."{mark}{name}"'


def _number(value: float) -> Decimal:
    return Decimal(json.dumps(value))


def _equal(wanted: Json, value: Value | None) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, str):
        return wanted == value
    return isinstance(value, Decimal) and _number(wanted) == value


@dataclass(frozen=True, slots=True)
class Exactly:
    wanted: Json

    def path(self, name: str, root: str = ROOT) -> str:
        return f"{_at(root, name)} == {literal(self.wanted)}"

    def matches(self, value: Value | None) -> bool:
        return _equal(self.wanted, value)


@dataclass(frozen=True, slots=True)
class Prefix:
    text: str

    def path(self, name: str, root: str = ROOT) -> str:
        return f"{_at(root, name)} starts with {literal(self.text)}"

    def matches(self, value: Value | None) -> bool:
        return isinstance(value, str) and value.startswith(self.text)


@dataclass(frozen=True, slots=True)
class Suffix:
    text: str

    def path(self, name: str, root: str = ROOT) -> str:
        return f"{_at(root, name, '~')} starts with {literal(self.text[::-1])}"

    def matches(self, value: Value | None) -> bool:
        return isinstance(value, str) and value.endswith(self.text)


@dataclass(frozen=True, slots=True)
class EqualsIgnoreCase:
    text: str

    def path(self, name: str, root: str = ROOT) -> str:
        return f"{_at(root, name, '^')} == {literal(lower_ascii(self.text))}"

    def matches(self, value: Value | None) -> bool:
        return isinstance(value, str) and lower_ascii(value) == lower_ascii(self.text)


@dataclass(frozen=True, slots=True)
class Exists:
    wanted: bool

    def path(self, name: str, root: str = ROOT) -> str:
        return f"{'' if self.wanted else '!'}exists({_at(root, name)})"

    def matches(self, value: Value | None) -> bool:
        return (value is not None) is self.wanted


@dataclass(frozen=True, slots=True)
class Numeric:
    """bounds: comparisons with their numbers; all must hold."""

    bounds: Sequence[tuple[str, float]]

    def path(self, name: str, root: str = ROOT) -> str:
        parts = (
            f"{_at(root, name)} {'==' if sign == '=' else sign} {literal(to)}" for sign, to in self.bounds
        )
        return f"({' && '.join(parts)})"

    def matches(self, value: Value | None) -> bool:
        return isinstance(value, Decimal) and all(
            _holds(value, sign, _number(to)) for sign, to in self.bounds
        )


def _holds(value: Decimal, sign: str, to: Decimal) -> bool:
    match sign:
        case "<":
            return value < to
        case "<=":
            return value <= to
        case ">":
            return value > to
        case ">=":
            return value >= to
        case _:
            return value == to


@dataclass(frozen=True, slots=True)
class AnythingBut:
    """An attribute that is there and that none of the patterns matches. In jsonpath the negation of a comparison of
    different types is unknown; exists() makes it true."""

    patterns: Sequence[Pattern]

    def path(self, name: str, root: str = ROOT) -> str:
        parts = (pattern.path(name, "@") for pattern in self.patterns)
        return f"(exists({_at(root, name)}) && !exists({root} ? ({' || '.join(parts)})))"

    def matches(self, value: Value | None) -> bool:
        return value is not None and not any(pattern.matches(value) for pattern in self.patterns)
