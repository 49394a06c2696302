"""Filters of subscriptions: which events of its types a subscription receives, by their attributes.

The language is that of EventBridge and SNS. All names must match; of the patterns of one name, any. `$or` has
alternatives, of which one must match. A filter is compiled to a predicate of jsonpath, which PostgreSQL evaluates in
the statement that routes (sql/queries/route_events.sql). A test compares both.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hooksaga.core.errors import InvalidPart
from hooksaga.core.event_attributes import MAX_NUMBER, MAX_TEXT, NAME_PATTERN, NAME_RULE
from hooksaga.core.filter_patterns import (
    COMPARISONS,
    AnythingBut,
    EqualsIgnoreCase,
    Exactly,
    Exists,
    Numeric,
    Pattern,
    Prefix,
    Suffix,
    Value,
)

OR = "$or"
MAX_NAMES = 10
MAX_ALTERNATIVES = 10
MAX_VALUES = 100
MAX_CHARACTERS = 4096

FILTER_RULE = (
    f"at most {MAX_NAMES} names, {MAX_ALTERNATIVES} alternatives in `$or`, {MAX_VALUES} patterns and values in all, "
    f"and {MAX_CHARACTERS:,} characters of JSON"
)

Json = Any
Operator = Callable[[Json, str], Pattern]
Place = str


@dataclass(frozen=True, slots=True)
class _Name:
    """One name: any of its patterns must match."""

    name: str
    wanted: Sequence[Json]
    patterns: Sequence[Pattern]

    def path(self) -> str:
        return _joined(" || ", (pattern.path(self.name) for pattern in self.patterns))

    def matches(self, attributes: Mapping[str, Value]) -> bool:
        return any(pattern.matches(attributes.get(self.name)) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class _Or:
    """Alternatives: one of them must match as a whole."""

    name: str
    wanted: Sequence[Json]
    alternatives: Sequence[Sequence[_Name]]

    def path(self) -> str:
        return _joined(" || ", (_joined(" && ", (one.path() for one in each)) for each in self.alternatives))

    def matches(self, attributes: Mapping[str, Value]) -> bool:
        return any(all(one.matches(attributes) for one in each) for each in self.alternatives)


@dataclass(frozen=True, slots=True)
class FailedCondition:
    """The first name of a filter that does not match an event. value: None if the event has no such attribute, and for
    `$or`."""

    name: str
    wanted: Sequence[Json]
    value: Value | None


def value_text(value: Value) -> str:
    """Return a value of an attribute as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else f"{value}"


def check_filter(given: Mapping[str, Json]) -> dict[str, Json]:
    """Return the filter. Raises InvalidPart with the place, such as `.order_id[0].numeric`, and the rule."""
    _parts(given)
    return dict(given)


def compile_filter(given: Mapping[str, Json]) -> str:
    """Return a predicate of jsonpath. It is true for matching events, and never an error."""
    return _joined(" && ", (part.path() for part in _parts(given)))


def failed_condition(given: Mapping[str, Json], attributes: Mapping[str, Value]) -> FailedCondition | None:
    """Return the first name that does not match an event with these attributes, or None if the filter matches."""
    for part in _parts(given):
        if not part.matches(attributes):
            return FailedCondition(part.name, part.wanted, attributes.get(part.name))
    return None


def _joined(word: str, parts: Any) -> str:
    return f"({word.join(parts)})"


def _parts(given: Mapping[str, Json]) -> list[_Name | _Or]:
    parts: list[_Name | _Or] = []
    for name, wanted in _members(given, ""):
        parts.append(_or(wanted, f".{OR}") if name == OR else _name(name, wanted, ""))
    if len(json.dumps(given, ensure_ascii=False, separators=(",", ":"))) > MAX_CHARACTERS:
        raise InvalidPart("", f"must have at most {MAX_CHARACTERS:,} characters of JSON")
    if _count(given) > MAX_VALUES:
        raise InvalidPart("", f"must have at most {MAX_VALUES} patterns and values")
    return parts


def _object(given: Json) -> Mapping[str, Json] | None:
    return cast("Mapping[str, Json]", given) if isinstance(given, Mapping) else None


def _list(given: Json) -> list[Json] | None:
    return cast("list[Json]", given) if isinstance(given, list) else None


def _count(value: Json) -> int:
    """Return the number of patterns and values: the elements of all lists."""
    if (members := _object(value)) is not None:
        return sum(map(_count, members.values()))
    return sum(max(1, _count(one)) for one in _list(value) or ())


def _members(given: Json, place: Place) -> list[tuple[str, Json]]:
    members = _object(given)
    if members is None:
        raise InvalidPart(place, "must be an object of attribute names")
    if not 1 <= len(members) <= MAX_NAMES:
        raise InvalidPart(place, f"must have 1 to {MAX_NAMES} names")
    return list(members.items())


def _or(wanted: Json, place: Place) -> _Or:
    objects = _list(wanted) or []
    if not 2 <= len(objects) <= MAX_ALTERNATIVES:
        raise InvalidPart(place, f"must be a list of 2 to {MAX_ALTERNATIVES} objects")
    alternatives = [
        [_name(name, patterns, f"{place}[{at}]") for name, patterns in _members(each, f"{place}[{at}]")]
        for at, each in enumerate(objects)
    ]
    return _Or(OR, objects, alternatives)


_NAME = re.compile(NAME_PATTERN.strip("^$"))


def _name(name: str, wanted: Json, place: Place) -> _Name:
    place = f"{place}.{name[:MAX_TEXT]}"
    if name == OR:
        raise InvalidPart(place, "must not be inside another $or")
    if not _NAME.fullmatch(name):
        raise InvalidPart(place, f"an attribute name must have {NAME_RULE}")
    items = _list(wanted)
    if not items:
        raise InvalidPart(place, 'must be a list of values and patterns, such as ["a", {"prefix": "b"}]')
    return _Name(name, items, [_pattern(one, f"{place}[{at}]") for at, one in enumerate(items)])


def _pattern(given: Json, place: Place) -> Pattern:
    pattern = _object(given)
    if pattern is None:
        return Exactly(_value(given, place))
    if len(pattern) != 1:
        raise InvalidPart(place, f"must have one operator: {_OPERATOR_NAMES}")
    ((operator, operand),) = pattern.items()
    place = f"{place}.{operator[:MAX_TEXT]}"
    if operator not in _OPERATORS:
        raise InvalidPart(place, f"is not supported; the operators are {_OPERATOR_NAMES}")
    return _OPERATORS[operator](operand, place)


def _value(given: Json, place: Place) -> Any:
    if isinstance(given, str):
        return _text(given, place)
    if isinstance(given, bool):
        return given
    if given is None:
        raise InvalidPart(place, 'must not be null; {"exists": false} matches an absent attribute')
    if isinstance(given, list | Mapping):
        raise InvalidPart(place, "must be a string, a number or a boolean")
    return _number(given, place)


_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def _text(given: Json, place: Place) -> str:
    if not isinstance(given, str) or len(given) > MAX_TEXT or _CONTROL_CHARACTER.search(given):
        raise InvalidPart(
            place, f"must be a string of at most {MAX_TEXT} characters without control characters"
        )
    return given


def _affix(given: Json, place: Place) -> str:
    if given == "":
        raise InvalidPart(place, "must not be empty")
    return _text(given, place)


def _number(given: Json, place: Place) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not abs(given) <= (float(MAX_NUMBER) if isinstance(given, float) else MAX_NUMBER):
        raise InvalidPart(place, "must be a number from -10^30 to 10^30")
    return given


def _exists(given: Json, place: Place) -> Pattern:
    if not isinstance(given, bool):
        raise InvalidPart(place, "must be true or false")
    return Exists(given)


_NUMERIC_RULE = 'must be one comparison, such as [">", 0], or two, such as [">", 0, "<=", 150]'


def _numeric(given: Json, place: Place) -> Pattern:
    items = _list(given) or []
    if len(items) not in (2, 4):
        raise InvalidPart(place, _NUMERIC_RULE)
    bounds: list[tuple[str, float]] = []
    for at in range(0, len(items), 2):
        if items[at] not in COMPARISONS:
            raise InvalidPart(f"{place}[{at}]", f"must be one of {', '.join(COMPARISONS)}")
        bounds.append((items[at], _number(items[at + 1], f"{place}[{at + 1}]")))
    signs = "".join(sign.rstrip("=") for sign, _ in bounds)
    if len(bounds) == 2 and signs != "><":
        raise InvalidPart(place, "must have > or >= first and < or <= second, if it has two comparisons")
    return Numeric(bounds)


def _anything_but(given: Json, place: Place) -> Pattern:
    pattern = _object(given)
    if pattern is None:
        return AnythingBut(_one_or_many(lambda one, at: Exactly(_value(one, at)), given, place))
    if len(pattern) != 1 or not pattern.keys() <= _BUT.keys():
        raise InvalidPart(place, f"must be a value, a list of values, or one of {', '.join(_BUT)}")
    ((operator, operand),) = pattern.items()
    return AnythingBut(_one_or_many(_BUT[operator], operand, f"{place}.{operator}"))


def _one_or_many(operator: Operator, operand: Json, place: Place) -> list[Pattern]:
    items = _list(operand)
    if items is None:
        return [operator(operand, place)]
    if not items:
        raise InvalidPart(place, "must not be empty")
    return [operator(one, f"{place}[{at}]") for at, one in enumerate(items)]


_BUT: dict[str, Operator] = {
    "prefix": lambda given, place: Prefix(_affix(given, place)),
    "suffix": lambda given, place: Suffix(_affix(given, place)),
    "equals-ignore-case": lambda given, place: EqualsIgnoreCase(_text(given, place)),
}
_OPERATORS: dict[str, Operator] = {
    **_BUT,
    "anything-but": _anything_but,
    "exists": _exists,
    "numeric": _numeric,
}
_OPERATOR_NAMES = ", ".join(sorted(_OPERATORS))
