"""JSON Schema as a person would say it, and examples as they are shown. Everything that comes out is escaped HTML."""

import json
import re
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

from hooksaga.api.answers.answer import NAME_PATTERN
from hooksaga.api.cursors import ATTEMPTS_CURSOR, FOLLOW_CURSOR, ID_CURSOR, ROUTING_CURSOR
from hooksaga.api.description.requests import KEY_PATTERN, OWN_TYPE_PATTERN
from hooksaga.api.query_parameters import MAX_LONG_TEXT, MAX_TEXT, query_text_pattern
from hooksaga.core.described_input import BASE64_JSON_FORMAT, CALLBACK_URL_FORMAT, NO_CONTROL_CHARACTERS

Json = dict[str, Any]

_HUGE = 2**62
"""Bounds beyond it say no more than that the number is stored in 64 bits."""

_CODE = re.compile(r"`([^`]+)`")
_TOKEN = re.compile(
    r"(?P<key>\"(?:[^\"\\]|\\.)*\")(?=:)|(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<value>-?\d[\d.]*|true|false|null)"
)
_SAID_ALREADY = ""
_PATTERN_WORDS = {
    NAME_PATTERN: _SAID_ALREADY,
    OWN_TYPE_PATTERN: "must not begin with `hooksaga.`",
    KEY_PATTERN: _SAID_ALREADY,
    NO_CONTROL_CHARACTERS: "no control characters",
    **{
        f"^{query_text_pattern(most)}$": f"1 to {most} characters, no control characters"
        for most in (MAX_TEXT, MAX_LONG_TEXT)
    },
    **{f"^{form}$": "as it came" for form in (ID_CURSOR, ATTEMPTS_CURSOR, FOLLOW_CURSOR, ROUTING_CURSOR)},
}
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
_FORMATS = {
    "date-time": "time",
    "uri-reference": "URI reference",
    CALLBACK_URL_FORMAT: "callback URL",
    BASE64_JSON_FORMAT: "JSON in base64",
}
_OPEN = Markup('<a href="#object-{0}">{0}</a>')
_WORD = Markup("<code>{}</code>")


def prose(text: str) -> Markup:
    """A sentence whose `code` is marked as such."""
    parts = _CODE.split(text)
    return Markup("").join(_WORD.format(part) if at % 2 else escape(part) for at, part in enumerate(parts))


def shown_json(content: Any) -> Markup:
    """Indented, with a class for each kind of token."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    return Markup("").join(_tokens(text))


def _tokens(text: str) -> Iterator[Markup]:
    end = 0
    for token in _TOKEN.finditer(text):
        yield escape(text[end : token.start()])
        yield Markup('<span class="{}">{}</span>').format(token.lastgroup, token[0])
        end = token.end()
    yield escape(text[end:])


def type_of(schema: Json) -> Markup:
    """The kind of value, with a link where it is an object of its own."""
    match schema:
        case {"$ref": reference}:
            return _OPEN.format(reference.rsplit("/", 1)[1])
        case {"anyOf": choices}:
            return Markup(" or ").join(type_of(choice) for choice in choices)
        case {"enum": values}:
            return Markup(", ").join(_WORD.format(value) for value in values)
        case {"const": value}:
            return _WORD.format(value)
        case {"type": str()}:
            return _typed(schema)
        case {"pattern": pattern}:
            return Markup("text like {}").format(_WORD.format(pattern))
        case _:
            return escape("any JSON")


def _typed(schema: Json) -> Markup:
    match schema:
        case {"type": "array", "prefixItems": items}:
            return Markup("list of {}").format(Markup(" and ").join(type_of(one) for one in items))
        case {"type": "array", "items": dict() as items}:
            return Markup("list of {}").format(type_of(items))
        case {"type": "array"}:
            return escape("list")
        case {"type": "object"}:
            return _object(schema)
        case {"type": "string"}:
            return escape(_FORMATS.get(schema.get("format", ""), "text"))
        case _:
            return escape(_TYPES[schema["type"]])


def _object(schema: Json) -> Markup:
    match schema:
        case {"properties": properties}:
            inside = Markup(", ").join(
                Markup("{}: {}").format(_WORD.format(name), type_of(field))
                for name, field in properties.items()
            )
            return Markup("{{{}}}").format(inside)
        case {"additionalProperties": dict() as value}:
            return Markup("object of {}").format(type_of(value))
        case _:
            return escape("object")


def rules_of(schema: Json) -> list[str]:
    """The bounds of a value, in words; the bounds of null are none."""
    of_choices = [rule for choice in schema.get("anyOf", []) for rule in rules_of(choice)]
    return [*_bounds(schema), *_pattern(schema), *of_choices, *_default(schema)]


def _bounds(schema: Json) -> Iterator[str]:
    for least, most, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ):
        low, high = schema.get(least), schema.get(most)
        if high is not None and high < _HUGE:
            yield f"{low} to {high}{unit}" if low is not None else f"at most {high}{unit}"
    if "exclusiveMinimum" in schema:
        yield f"more than {schema['exclusiveMinimum']}"


def _pattern(schema: Json) -> Iterator[str]:
    """Most are said in words; a few stand for nothing that a reader has to know."""
    pattern = schema.get("pattern")
    if schema.get("type") == "string" and pattern is not None:
        yield from filter(None, [_PATTERN_WORDS.get(pattern, f"`{pattern}`")])


def _default(schema: Json) -> Iterator[str]:
    if schema.get("default") not in (None, ""):
        yield f"default `{json.dumps(schema['default'])}`"
