"""Bounds of a JSON Schema of the catalogue: how much work one value of a payload can cause.

A schema of a few lines can ask for 2^64 checks, by subschemas that refer to each other twice, and no timeout stops a
check in this process. So the number of checks of one value is counted when the schema is stored. References go within
the schema only.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from hooksaga.core.event_catalogue import pointer_of

MAX_CHECKS = 500
MAX_SUBSCHEMAS = 2000
MAX_PAYLOAD_DEPTH = 64
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENUM_VALUES_PER_CHECK = 20
_SAME_VALUE = ("not", "if", "then", "else", "propertyNames")
_SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
_ANY_CHILD = ("additionalProperties", "unevaluatedProperties", "items", "contains", "unevaluatedItems")
_DEFINITIONS = ("$defs", "definitions")
_REFUSED = ("$dynamicRef", "$recursiveRef")

Path = tuple[str, ...]


class InvalidSchema(ValueError):
    """A schema breaks a rule. path: its place in the schema, as a JSON Pointer."""

    def __init__(self, path: str, rule: str) -> None:
        super().__init__(rule)
        self.path = path


def check_bounds(schema: Mapping[str, Any]) -> None:
    """Raise InvalidSchema if a value of a payload could be checked more than MAX_CHECKS times.

    Raised too for `$ref` to anything but a place in this schema, and for dynamic references and identifiers of
    subschemas, which would change what a reference means.
    """
    _Bounds(schema).check()


class _Bounds:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._same_value: dict[Path, Counter[Path]] = {}
        self._open: set[Path] = set()

    def check(self) -> None:
        dialect = self._schema.get("$schema", DIALECT)
        if dialect != DIALECT:
            raise InvalidSchema("/$schema", f"must be {DIALECT}")
        for path in self._all:
            self._checks_of_same_value(path)
        self._check_growth()

    @cached_property
    def _all(self) -> list[Path]:
        """The places of all subschemas, the root first."""
        found: dict[Path, None] = {}
        waiting: list[Path] = [()]
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            if len(found) == MAX_SUBSCHEMAS:
                raise InvalidSchema("", f"must have at most {MAX_SUBSCHEMAS} subschemas")
            found[path] = None
            self._check_one(path)
            waiting += [*self._referred(path), *self._here(path), *self._below(path)]
            node = self._node(path)
            waiting += [(*path, word, name) for word in _DEFINITIONS for name in _mapping(node.get(word))]
        return list(found)

    def _check_one(self, path: Path) -> None:
        node = self._node(path)
        refused = [word for word in _REFUSED if word in node]
        if path:
            refused += [word for word in ("$id", "$schema") if isinstance(node.get(word), str)]
        if refused:
            raise InvalidSchema(pointer_of((*path, refused[0])), f"{refused[0]} is not allowed here")

    def _node(self, path: Path) -> Mapping[str, Any]:
        """Return the subschema; nothing for true and false."""
        value: Any = self._schema
        for part in path:
            value = cast("list[Any]", value)[int(part)] if isinstance(value, list) else value[part]
        return _mapping(value)

    def _referred(self, path: Path) -> list[Path]:
        reference = self._node(path).get("$ref")
        if not isinstance(reference, str):
            return []
        here = pointer_of((*path, "$ref"))
        if reference != "#" and not reference.startswith("#/"):
            raise InvalidSchema(here, "must begin with #/: other documents are never fetched")
        parts = tuple(part.replace("~1", "/").replace("~0", "~") for part in reference.split("/")[1:])
        try:
            self._node(parts)
        except (KeyError, IndexError, ValueError, TypeError):
            raise InvalidSchema(here, f"{reference[:100]} is not in this schema") from None
        return [parts]

    def _here(self, path: Path) -> Iterator[Path]:
        """The subschemas that apply to the same value."""
        node = self._node(path)
        yield from ((*path, word) for word in _SAME_VALUE if word in node)
        for word in _SAME_VALUE_LISTS:
            yield from ((*path, word, str(at)) for at in range(len(_list(node.get(word)))))
        yield from ((*path, "dependentSchemas", name) for name in _mapping(node.get("dependentSchemas")))

    def _below(self, path: Path) -> Iterator[Path]:
        """The subschemas that apply to members and items of the value."""
        yield from self._any_child(path)
        yield from self._named_children(path)

    def _named_children(self, path: Path) -> Iterator[Path]:
        """Of these, the subschemas that apply to one member or item."""
        node = self._node(path)
        yield from ((*path, "properties", name) for name in _mapping(node.get("properties")))
        yield from ((*path, "prefixItems", str(at)) for at in range(len(_list(node.get("prefixItems")))))

    def _any_child(self, path: Path) -> Iterator[Path]:
        """Of these, the subschemas that may apply to any of them."""
        node = self._node(path)
        yield from ((*path, word) for word in _ANY_CHILD if word in node)
        yield from ((*path, "patternProperties", name) for name in _mapping(node.get("patternProperties")))

    def _checks_of_same_value(self, path: Path) -> Counter[Path]:
        """Return how often each subschema is applied to a value to which this one is applied."""
        known = self._same_value.get(path)
        if known is not None:
            return known
        if path in self._open:
            raise InvalidSchema(pointer_of(path), "refers to itself without going into the payload")
        self._open.add(path)
        self._check_total(path, len(self._open))
        node = self._node(path)
        # What is left over is found by applying the other subschemas once more.
        times = 2 if "unevaluatedProperties" in node or "unevaluatedItems" in node else 1
        found = Counter({path: 1 + len(_list(node.get("enum"))) // _ENUM_VALUES_PER_CHECK})
        for other in [*self._referred(path), *self._here(path)]:
            for one, count in self._checks_of_same_value(other).items():
                found[one] += times * count
            self._check_total(path, found.total())
        self._open.remove(path)
        self._same_value[path] = found
        return found

    def _check_total(self, path: Path, total: int) -> None:
        if total > MAX_CHECKS:
            raise InvalidSchema(pointer_of(path), f"one value could need more than {MAX_CHECKS} checks")

    def _check_growth(self) -> None:
        """Count the checks of a value at each depth of a payload, until the depth makes no difference."""
        children = {path: self._children(path) for path in self._all}
        checks = {path: self._checks_of_same_value(path).total() for path in self._all}
        for _ in range(MAX_PAYLOAD_DEPTH):
            deeper = {
                path: max((_sum_of(checks, one) for one in choices), default=0)
                for path, choices in children.items()
            }
            for path, total in deeper.items():
                self._check_total(path, total)
            if deeper == checks:
                return
            checks = deeper

    def _children(self, path: Path) -> list[Counter[Path]]:
        """Return, for each member or item that is named and for any other one, the subschemas that apply to it."""
        named: dict[tuple[str, str], Counter[Path]] = {}
        others: Counter[Path] = Counter()
        for here, count in self._checks_of_same_value(path).items():
            for place in self._any_child(here):
                others[place] += count
            for place in self._named_children(here):
                named.setdefault((place[-2], place[-1]), Counter())[place] += count
        return [others, *(one + others for one in named.values())]


def _sum_of(checks: Mapping[Path, int], counted: Counter[Path]) -> int:
    return sum(count * checks[path] for path, count in counted.items())


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
