"""Event types of a subscription: exact types, prefixes such as `invoice.*`, or `*`.

The database compares them with the type of an event (sql/functions/patterns_of_type.sql). A test compares both.
"""

import re
from collections.abc import Iterable, Sequence

from hooksaga.core.event_input import EVENT_TYPE_RULE, RESERVED_PREFIX

ANY_TYPE = "*"
MAX_EVENT_TYPES = 100

EVENT_TYPES_RULE = (
    f"1 to {MAX_EVENT_TYPES} event types, each {EVENT_TYPE_RULE}, "
    "or a prefix such as `invoice.*`, or `*` for all"
)
PATTERN = r"^([A-Za-z0-9_.:/-]{1,100}|[A-Za-z0-9_.:/-]{1,98}\.\*|\*)$"
_PATTERN = re.compile(PATTERN.removesuffix("$") + r"\Z")


def is_exact(pattern: str) -> bool:
    """Return whether the pattern is one event type."""
    return not pattern.endswith("*")


def patterns_of_type(event_type: str) -> list[str]:
    """Return the patterns that match an event type. `*` does not match the types of operational events."""
    prefixes = [f"{event_type[: at + 1]}*" for at, letter in enumerate(event_type) if letter == "."]
    anything = [] if event_type.startswith(RESERVED_PREFIX) else [ANY_TYPE]
    return [event_type, *prefixes, *anything]


def matching_patterns(event_types: Iterable[str], event_type: str) -> list[str]:
    """Return those of a subscription's event types that match the type of an event, in the given order."""
    candidates = set(patterns_of_type(event_type))
    return [pattern for pattern in event_types if pattern in candidates]


def check_event_types(event_types: Sequence[str]) -> list[str]:
    """Return the event types without repeats. Raises ValueError if there are too few or too many, or names the first
    that breaks the rule."""
    for pattern in event_types:
        if not _PATTERN.match(pattern):
            raise ValueError(f"must be {EVENT_TYPES_RULE}, not {pattern[:100]!r}")
    different = list(dict.fromkeys(event_types))
    if not 1 <= len(event_types) <= MAX_EVENT_TYPES:
        raise ValueError(f"must be {EVENT_TYPES_RULE}")
    return different


def sample_type(event_types: Sequence[str]) -> str:
    """Return an event type that the first of a subscription's event types matches."""
    first = event_types[0]
    return first if is_exact(first) else f"{first.removesuffix(ANY_TYPE)}test"[:100]


def shown_event_types(event_types: Sequence[str], most: int = 3) -> str:
    """Return the event types in one line: the first ones, and the number of the others."""
    more = len(event_types) - most
    return ", ".join(event_types[:most]) + (f" +{more}" if more > 0 else "")
