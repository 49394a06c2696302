"""A schema cannot make one value of a payload cost more than a bounded number of checks, nor fetch anything."""

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.core.event_catalogue import MAX_SCHEMA_BYTES, Mismatch, read_payload
from hooksaga.core.schema_bounds import DIALECT, MAX_CHECKS, MAX_SUBSCHEMAS, InvalidSchema, check_bounds

TWICE = {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}

GOOD: dict[str, dict[str, Any]] = {
    "empty": {},
    "of its dialect": {"$schema": DIALECT, "$id": "https://example.com/order.json", "type": "object"},
    "a tree": {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "n": {"type": "integer"}}},
    "a list of trees": {"properties": {"children": {"items": {"$ref": "#"}}}},
    "definitions": {
        "$defs": {
            "money": {"type": "string", "pattern": r"^\d+\.\d{2}$"},
            "list": {"items": {"$ref": "#/$defs/money"}},
        },
        "properties": {name: {"$ref": "#/$defs/list"} for name in ("a", "b", "c")},
    },
    "many alternatives": {"items": {"oneOf": [{"const": number} for number in range(100)]}},
    "nothing else": {"properties": {"a": {}}, "unevaluatedProperties": False},
    "a slash in a name": {"$defs": {"a/b~c": {}}, "items": {"$ref": "#/$defs/a~1b~0c"}},
}

NEVER_FETCHED = "must begin with #/: other documents are never fetched"
ENDLESS = "refers to itself without going into the payload"
TOO_MANY = f"one value could need more than {MAX_CHECKS} checks"

BAD: dict[str, tuple[Any, str, str]] = {
    "not an object": ([], "", "must be an object"),
    "an unknown type": ({"properties": {"a": {"type": "text"}}}, "/properties/a/type", "*"),
    "a number as text": ({"properties": {"a": {"minimum": "1"}}}, "/properties/a/minimum", "*"),
    "another dialect": (
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        "/$schema",
        f"must be {DIALECT}",
    ),
    "a remote reference": ({"items": {"$ref": "https://example.com/x"}}, "/items/$ref", NEVER_FETCHED),
    "a file": ({"$ref": "file:///etc/passwd"}, "/$ref", NEVER_FETCHED),
    "a relative document": ({"$id": "https://example.com/a", "$ref": "b"}, "/$ref", NEVER_FETCHED),
    "a missing definition": ({"$ref": "#/$defs/none"}, "/$ref", "#/$defs/none is not in this schema"),
    "an anchor": ({"$defs": {"a": {"$anchor": "a"}}, "$ref": "#a"}, "/$ref", NEVER_FETCHED),
    "a dynamic reference": (
        {"items": {"$dynamicRef": "#"}},
        "/items/$dynamicRef",
        "$dynamicRef is not allowed here",
    ),
    "an identifier within": (
        {"items": {"$id": "https://example.com/x"}},
        "/items/$id",
        "$id is not allowed here",
    ),
    "a look-ahead": ({"items": {"pattern": "(?=a)b"}}, "/items/pattern", "*"),
    "a back-reference": ({"pattern": r"(a)\1"}, "/pattern", "*"),
    "a pattern that grows": ({"pattern": "a{1000}{1000}"}, "/pattern", "*"),
    "itself": ({"$ref": "#"}, "", ENDLESS),
    "itself on a detour": ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "/$defs/a", ENDLESS),
    "twice at each depth": ({"properties": {"a": TWICE}}, "/properties/a", TOO_MANY),
    "twice in any member": ({"additionalProperties": TWICE}, "/additionalProperties", TOO_MANY),
    "twice in any item": ({"items": {"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}}, "/items", TOO_MANY),
    "twice by name and pattern": (
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}},
        "",
        TOO_MANY,
    ),
    "a doubling chain": (
        {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(30)} | {"30": {}},
        },
        "/$defs/*",
        TOO_MANY,
    ),
    "nested unevaluated": (
        {
            "$ref": "#/$defs/0",
            "$defs": {
                str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}], "unevaluatedProperties": False}
                for n in range(30)
            }
            | {"30": {}},
        },
        "/$defs/*",
        TOO_MANY,
    ),
    "too many checks": ({"allOf": [{"type": "object"}] * (MAX_CHECKS + 1)}, "", TOO_MANY),
    "a long chain": (
        {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(1500)} | {"1500": {}},
        },
        "*",  # the mutation run has more frames for each step, and reaches the depth of Python first
        "*",
    ),
}


@pytest.mark.parametrize("schema", GOOD.values(), ids=GOOD.keys())
def test_an_ordinary_schema_is_allowed(schema: dict[str, Any]) -> None:
    assert compile_schema(json.dumps(schema)).mismatch({}) is None


@pytest.mark.parametrize(("schema", "path", "rule"), BAD.values(), ids=BAD.keys())
def test_an_error_names_the_place_and_the_rule(schema: Any, path: str, rule: str) -> None:
    """A star stands for text of the library, or for the one of many places at which the limit is passed."""
    with pytest.raises(InvalidSchema) as refused:
        compile_schema(json.dumps(schema))
    assert fnmatchcase(refused.value.path, path)
    assert fnmatchcase(str(refused.value), rule)
    assert str(refused.value) != "None"


def checks(number: int) -> dict[str, Any]:
    """A schema that costs so many checks of one value."""
    return {"allOf": [{}] * (number - 1)}


COSTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "itself": checks,
    **{word: lambda number, word=word: {word: [{}] * (number - 1)} for word in ("anyOf", "oneOf")},
    **{
        word: lambda number, word=word: {word: checks(number - 1)}
        for word in ("not", "if", "then", "else", "propertyNames")
    },
    "dependentSchemas": lambda number: {"dependentSchemas": {"a": {}, "b": checks(number - 2)}},
    "a reference": lambda number: {"$ref": "#/$defs/a", "$defs": {"a": checks(number - 1)}},
    "an old definition": lambda number: {"$ref": "#/definitions/a", "definitions": {"a": checks(number - 1)}},
    "20 values of items": lambda number: {"items": {"enum": list(range(20 * number - 1))}},
    "a definition": lambda number: {"$defs": {"a": checks(number)}},
    **{
        f"{one} and {other}": lambda number, one=one, other=other: {one: checks(number - 1), other: {}}
        for one, other in (
            ("items", "contains"),
            ("contains", "unevaluatedItems"),
            ("additionalProperties", "unevaluatedProperties"),
        )
    },
    "a member": lambda number: {
        "properties": {"a": checks(number - 2), "b": checks(9)},
        "patternProperties": {"a": {}, "b": {}},
    },
    "an item": lambda number: {"prefixItems": [checks(9), checks(number - 1)], "items": {}},
    "one member named twice": lambda number: {
        "properties": {"a": checks(number - 100)},
        "allOf": [{"properties": {"a": checks(100)}}],
    },
    "a member of a member": lambda number: {"properties": {"a": {"properties": {"b": checks(number)}}}},
}


@pytest.mark.parametrize("schema", COSTS.values(), ids=COSTS.keys())
def test_one_value_may_need_the_most_checks_and_not_one_more(schema: Callable[[int], dict[str, Any]]) -> None:
    check_bounds(schema(MAX_CHECKS))
    with pytest.raises(InvalidSchema, match=f"^{TOO_MANY}$"):
        check_bounds(schema(MAX_CHECKS + 1))


@pytest.mark.parametrize("word", ["unevaluatedProperties", "unevaluatedItems"])
def test_what_is_left_over_is_found_by_checking_twice(word: str) -> None:
    check_bounds({"allOf": [{}] * 249, word: False})
    with pytest.raises(InvalidSchema, match=f"^{TOO_MANY}$"):
        check_bounds({"allOf": [{}] * 250, word: False})


def test_members_with_other_names_are_other_values() -> None:
    check_bounds({"properties": {"a": checks(MAX_CHECKS), "b": checks(MAX_CHECKS)}})


def test_a_schema_has_so_many_subschemas() -> None:
    check_bounds({"$defs": {str(number): {} for number in range(MAX_SUBSCHEMAS - 1)}})
    with pytest.raises(InvalidSchema, match=f"^must have at most {MAX_SUBSCHEMAS} subschemas$") as refused:
        check_bounds({"$defs": {str(number): {} for number in range(MAX_SUBSCHEMAS)}})
    assert refused.value.path == ""


@pytest.mark.parametrize("place", ["$defs/none", "allOf/1", "allOf/x", "type/x", "x" * 200])
def test_a_reference_to_nothing_is_told_with_its_beginning(place: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        check_bounds({"type": "object", "allOf": [{}], "items": {"$ref": f"#/{place}"}})
    told = f"#/{place}"[:100]
    assert (refused.value.path, str(refused.value)) == ("/items/$ref", f"{told} is not in this schema")


@pytest.mark.parametrize("word", ["$id", "$schema", "$dynamicRef", "$recursiveRef"])
def test_what_would_change_a_reference_is_refused_where_it_stands(word: str) -> None:
    with pytest.raises(InvalidSchema, match=f"^{re.escape(word)} is not allowed here$") as refused:
        check_bounds({"items": {word: "#"}})
    assert refused.value.path == f"/items/{word}"
    check_bounds({"properties": {word: {}}})


def test_the_most_expensive_schema_takes_linear_time() -> None:
    """As many checks of each value as are allowed, over the largest payload; and a bad pattern."""
    schema = {"items": {"allOf": [{"type": "integer"}] * (MAX_CHECKS - 2)}}
    assert len(json.dumps(schema)) < MAX_SCHEMA_BYTES
    assert compile_schema(json.dumps(schema)).mismatch([1] * 131_000) is None
    pattern = compile_schema('{"pattern": "^(a+)+$"}')
    assert pattern.mismatch("a" * 262_000 + "!") == Mismatch("", 'the value does not match "^(a+)+$"')


@pytest.mark.parametrize(
    ("schema", "payload", "pointer", "rule"),
    [
        ({"required": ["order"]}, "{}", "", '"order" is a required property'),
        (
            {"properties": {"a/b": {"items": {"type": "string"}}}},
            '{"a/b": ["x", 7]}',
            "/a~1b/1",
            'not of type "string"',
        ),
        ({"properties": {"n": {"maximum": 5}}}, '{"n": 1e400}', "/n", "maximum of 5"),
        ({"maxLength": 3}, '"a secret text"', "", "longer than 3 characters"),
    ],
)
def test_a_mismatch_names_the_place_and_the_rule_and_never_the_value(
    schema: dict[str, Any], payload: str, pointer: str, rule: str
) -> None:
    found = compile_schema(json.dumps(schema)).mismatch(read_payload(payload))
    assert found is not None
    assert found.pointer == pointer
    assert rule in found.rule
    assert "secret" not in found.rule


@pytest.mark.parametrize(
    ("payload", "matches"),
    [
        ("0.1", True),
        ("1.0", True),
        ("1e999999999", False),
        ("-1e-999999999", False),
        ("1e99999999999999999999", False),
        ("9" * 5000, False),
        ('"\\u0000"', False),
        ("null", False),
    ],
    ids=lambda value: str(value)[:20].replace("\\", "/"),
)
def test_any_number_is_checked(payload: str, matches: bool) -> None:
    schema = compile_schema('{"multipleOf": 0.01, "minimum": -5, "enum": [0.1, 1]}')
    assert (schema.mismatch(read_payload(payload)) is None) is matches
