"""JSON Schema of filters. The limits of values and characters, which no schema expresses, are in the field's words."""

from pydantic import JsonValue

from hooksaga.core.described_input import NO_CONTROL_CHARACTERS
from hooksaga.core.event_attributes import MAX_NUMBER, MAX_TEXT, NAME_PATTERN
from hooksaga.core.filter_patterns import COMPARISONS
from hooksaga.core.filters import MAX_ALTERNATIVES, MAX_NAMES, OR

Schema = dict[str, JsonValue]


def _object(**properties: JsonValue) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(of: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": of}


def _any(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _numeric(*signs: list[JsonValue]) -> Schema:
    items: list[JsonValue] = []
    for choice in signs:
        items.append({"enum": choice})
        items.append(_NUMBER)
    return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}


_TEXT: Schema = {"type": "string", "maxLength": MAX_TEXT, "pattern": NO_CONTROL_CHARACTERS}
_AFFIX: Schema = {**_TEXT, "minLength": 1}
_NUMBER: Schema = {"type": "number", "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER}
_VALUE = _any(_TEXT, _NUMBER, {"type": "boolean"})

FILTER_PATTERN_SCHEMA: Schema = {
    "description": "A value, or one pattern, for an attribute of an event.",
    "examples": [{"prefix": "A-"}],
    **_any(
        _TEXT,
        _NUMBER,
        {"type": "boolean"},
        _object(prefix=_AFFIX),
        _object(suffix=_AFFIX),
        _object(**{"equals-ignore-case": _TEXT}),
        _object(exists={"type": "boolean"}),
        _object(numeric=_any(_numeric(list(COMPARISONS)), _numeric([">", ">="], ["<", "<="]))),
        _object(
            **{
                "anything-but": _any(
                    _VALUE,
                    _list(_VALUE),
                    _object(prefix=_any(_AFFIX, _list(_AFFIX))),
                    _object(suffix=_any(_AFFIX, _list(_AFFIX))),
                    _object(**{"equals-ignore-case": _any(_TEXT, _list(_TEXT))}),
                )
            }
        ),
    ),
}
_NAMES: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": MAX_NAMES,
    "propertyNames": {"pattern": NAME_PATTERN},
    "additionalProperties": _list(FILTER_PATTERN_SCHEMA),
}

FILTER_SCHEMA: Schema = {
    "description": "By the name of an attribute, the values and patterns of which any must match. All names must "
    "match, and one of the alternatives in `$or`.",
    "examples": [{"country": ["DE", "AT"], "total": [{"numeric": [">=", 100]}]}],
    **_NAMES,
    "properties": {
        OR: {
            "description": "Alternatives, each with names.",
            "type": "array",
            "minItems": 2,
            "maxItems": MAX_ALTERNATIVES,
            "items": _NAMES,
        }
    },
    "propertyNames": {"pattern": f"^([$]or|{NAME_PATTERN.strip('^$')})$"},
}
