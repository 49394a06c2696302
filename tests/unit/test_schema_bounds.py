"""A schema cannot make one value of a payload cost more than a bounded number of checks, nor fetch anything."""

import json
from typing import Any

import pytest

from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.core.event_catalogue import MAX_SCHEMA_BYTES, Mismatch, read_payload
from hooksaga.core.schema_bounds import DIALECT, MAX_CHECKS, InvalidSchema

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

BAD: dict[str, tuple[Any, str]] = {
    "not an object": ([], ""),
    "an unknown type": ({"properties": {"a": {"type": "text"}}}, "/properties/a/type"),
    "a number as text": ({"properties": {"a": {"minimum": "1"}}}, "/properties/a/minimum"),
    "another dialect": ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
    "a remote reference": ({"items": {"$ref": "https://example.com/x"}}, "/items/$ref"),
    "a file": ({"$ref": "file:///etc/passwd"}, "/$ref"),
    "a relative document": ({"$id": "https://example.com/a", "$ref": "b"}, "/$ref"),
    "a missing definition": ({"$ref": "#/$defs/none"}, "/$ref"),
    "an anchor": ({"$defs": {"a": {"$anchor": "a"}}, "$ref": "#a"}, "/$ref"),
    "a dynamic reference": ({"items": {"$dynamicRef": "#"}}, "/items/$dynamicRef"),
    "an identifier within": ({"items": {"$id": "https://example.com/x"}}, "/items/$id"),
    "a look-ahead": ({"items": {"pattern": "(?=a)b"}}, "/items/pattern"),
    "a back-reference": ({"pattern": r"(a)\1"}, "/pattern"),
    "a pattern that grows": ({"pattern": "a{1000}{1000}"}, "/pattern"),
    "itself": ({"$ref": "#"}, ""),
    "itself on a detour": ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "/$defs/a"),
    "twice at each depth": ({"properties": {"a": TWICE}}, ""),
    "twice in any member": ({"additionalProperties": TWICE}, ""),
    "twice in any item": ({"items": {"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}}, ""),
    "twice by name and pattern": (
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"a": {"$ref": "#"}}},
        "",
    ),
    "a doubling chain": (
        {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(30)} | {"30": {}},
        },
        "/$defs/",
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
        "/$defs/",
    ),
    "too many checks": ({"allOf": [{"type": "object"}] * (MAX_CHECKS + 1)}, ""),
    "a long chain": (
        {
            "$ref": "#/$defs/0",
            "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(1500)} | {"1500": {}},
        },
        "",
    ),
}


@pytest.mark.parametrize("schema", GOOD.values(), ids=GOOD.keys())
def test_an_ordinary_schema_is_allowed(schema: dict[str, Any]) -> None:
    assert compile_schema(json.dumps(schema)).mismatch({}) is None


@pytest.mark.parametrize(("schema", "path"), BAD.values(), ids=BAD.keys())
def test_an_error_names_the_place(schema: Any, path: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        compile_schema(json.dumps(schema))
    assert refused.value.path.startswith(path)
    assert path or len(refused.value.path) < 40
    assert str(refused.value)


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
    ids=lambda value: str(value)[:20],
)
def test_any_number_is_checked(payload: str, matches: bool) -> None:
    schema = compile_schema('{"multipleOf": 0.01, "minimum": -5, "enum": [0.1, 1]}')
    assert (schema.mismatch(read_payload(payload)) is None) is matches
