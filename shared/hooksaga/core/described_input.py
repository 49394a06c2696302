"""JSON Schemas of rules that are checked in code: the description must allow exactly the accepted input.

Rules that no schema can express are in the descriptions of the fields (decision 0066).
"""

from collections.abc import Callable
from typing import Any

from pydantic import JsonValue

from hooksaga.core.custom_headers import MAX_HEADERS, MAX_VALUE_LENGTH, RESERVED, RESERVED_PREFIXES
from hooksaga.core.event_attributes import MAX_ATTRIBUTES, MAX_NUMBER, MAX_TEXT
from hooksaga.core.event_attributes import NAME_PATTERN as ATTRIBUTE_NAME_PATTERN

Schema = dict[str, JsonValue]

NO_CONTROL_CHARACTERS = r"^[^\u0000-\u001f\u007f]*$"

CALLBACK_URL_FORMAT = "callback-url"
"""Custom format: an https URL by the rules of docs/api.md, which no pattern can express."""

BASE64_JSON_FORMAT = "base64-json"
"""Custom format: base64 of JSON in UTF-8."""

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}"
_TAKEN = "|".join([*(f"{name}$" for name in sorted(RESERVED)), *RESERVED_PREFIXES])
_NAMES: Schema = {"pattern": f"^(?!{_TAKEN}){_NAME}$"}
_VALUE = rf"[!-~]([ -~]{{0,{MAX_VALUE_LENGTH - 2}}}[!-~])?"

HEADERS_SCHEMA: Schema = {
    "type": "object",
    "maxProperties": MAX_HEADERS,
    "propertyNames": _NAMES,
    "additionalProperties": {"type": "string", "pattern": rf"^(?!\*\*\*$){_VALUE}$"},
}
HEADER_CHANGES_SCHEMA: Schema = {
    "type": "object",
    "propertyNames": _NAMES,
    "additionalProperties": {"anyOf": [{"type": "string", "pattern": f"^{_VALUE}$"}, {"type": "null"}]},
}
ATTRIBUTES_SCHEMA: Schema = {
    "type": "object",
    "maxProperties": MAX_ATTRIBUTES,
    "propertyNames": {"pattern": ATTRIBUTE_NAME_PATTERN},
    "additionalProperties": {
        "anyOf": [
            {"type": "string", "maxLength": MAX_TEXT, "pattern": NO_CONTROL_CHARACTERS},
            {"type": "number", "minimum": -MAX_NUMBER, "maximum": MAX_NUMBER},
            {"type": "boolean"},
        ]
    },
}


def described_without_null(*fields: str) -> Callable[[dict[str, Any]], None]:
    """Return a schema change that forbids null for these optional fields."""

    def change(schema: dict[str, Any]) -> None:
        for name in fields:
            field = schema["properties"][name]
            value, _null = field.pop("anyOf")
            del field["default"]
            field.update({**value, **field})

    return change


def described_one_of(*fields: str) -> Callable[[dict[str, Any]], None]:
    """Return a schema change that requires exactly one of these optional fields, which is not null."""

    def change(schema: dict[str, Any]) -> None:
        described_without_null(*fields)(schema)
        schema["oneOf"] = [{"required": [name]} for name in fields]

    return change


_NULL: Schema = {"type": "null"}
_MOMENT: Schema = {"type": "string", "format": "date-time"}

_NO_RESEND: Schema = {"ended_after": _NULL, "ended_before": _NULL, "status": _NULL}
_NO_FAILED: Schema = {"failed_after": _NULL, "failed_before": _NULL}
_NO_RANGE: Schema = {"since": _NULL, "until": _NULL}

BULK_OPERATION_RULES: dict[str, JsonValue] = {
    "oneOf": [
        {
            "properties": {
                "kind": {"const": "requeue"},
                "filter": {"properties": {**_NO_RANGE, **_NO_RESEND}},
            },
        },
        {
            "required": ["filter"],
            "properties": {
                "kind": {"const": "backfill"},
                "filter": {
                    "required": ["subscription_id", "since"],
                    "properties": {
                        "subscription_id": {"type": "integer"},
                        "since": _MOMENT,
                        "event_type": _NULL,
                        "error_code": _NULL,
                        **_NO_FAILED,
                        **_NO_RESEND,
                    },
                },
            },
        },
        {
            "required": ["filter"],
            "properties": {
                "kind": {"const": "resend"},
                "filter": {
                    "required": ["ended_after"],
                    "properties": {"ended_after": _MOMENT, **_NO_FAILED, **_NO_RANGE},
                },
            },
        },
    ]
}
