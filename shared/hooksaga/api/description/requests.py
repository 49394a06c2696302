"""Schemas of request bodies: of events, which code reads from raw bytes, and of the models that validate others."""

from collections.abc import Iterable
from typing import Any, cast

from pydantic import BaseModel

from hooksaga.api.answers.answer import NAME_PATTERN, reference_to
from hooksaga.core.cloud_events import MAX_MEDIA_TYPE, MAX_TIME
from hooksaga.core.described_filters import FILTER_PATTERN_SCHEMA, FILTER_SCHEMA
from hooksaga.core.described_input import ATTRIBUTES_SCHEMA, BASE64_JSON_FORMAT, NO_CONTROL_CHARACTERS
from hooksaga.core.event_attributes import MAX_ATTRIBUTES, MAX_TEXT, NAME_RULE, VALUE_RULE
from hooksaga.core.event_input import MAX_BATCH_ITEMS, MAX_ORDERING_KEY, OWN_SOURCE, RESERVED_PREFIX

Json = dict[str, Any]

KEY_PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
KEY: Json = {"type": "string", "pattern": KEY_PATTERN}

OWN_TYPE_PATTERN = f"^(?!{RESERVED_PREFIX.replace('.', '[.]')}){NAME_PATTERN.removeprefix('^')}"
"""Event types without the reserved prefix."""

_NAME: Json = {"type": "string", "pattern": NAME_PATTERN}
_ORDERING_KEY: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_ORDERING_KEY,
    "pattern": NO_CONTROL_CHARACTERS,
}
_OWN_TYPE: Json = {"type": "string", "pattern": OWN_TYPE_PATTERN}
_CHARACTER = r"[^\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\ufffe\uffff]"
_JSON_TYPE = (
    r"^ *[A-Za-z0-9!#$&^_.-]+/([A-Za-z0-9!#$&^_.-]+[+])?[Jj][Ss][Oo][Nn] *"
    r"(; *[Cc][Hh][Aa][Rr][Ss][Ee][Tt] *= *\"?[Uu][Tt][Ff]-?8\"? *)?$"
)


def _described(words: str, schema: Json) -> Json:
    return {"description": words, **schema}


def _maybe(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _record(required: Json, optional: Json) -> Json:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _text(most: int | None = None, *, least: int = 1, but: str = "") -> Json:
    return {"type": "string", "pattern": f"^{but}{_CHARACTER}{{{least},{'' if most is None else most}}}$"}


_EXTENSION: Json = {
    "anyOf": [
        _text(MAX_TEXT, least=0),
        {"type": "boolean"},
        {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
        {"type": "null"},
    ]
}
_DATA_BASE64: Json = {
    "type": "string",
    "format": BASE64_JSON_FORMAT,
    "contentEncoding": "base64",
    "contentMediaType": "application/json",
}
_SENT_AGAIN = "Kept for subscriptions that receive CloudEvents."
_CLOUD_EVENT: Json = {
    **_record(
        {
            "specversion": _described("The version of CloudEvents.", {"const": "1.0"}),
            "id": _described("With `source`, the idempotency key.", _text(255)),
            "source": _described("With `id`, the idempotency key.", _text(255, but=f"(?!{OWN_SOURCE}$)")),
            "type": _described("The event type.", _OWN_TYPE),
        },
        {
            "data": _described("The payload, stored byte for byte; `null` if missing.", {}),
            "data_base64": _described("Instead of `data`: its JSON text in base64.", _maybe(_DATA_BASE64)),
            "datacontenttype": _described(
                "`application/json` or another JSON type, in UTF-8. `null` or omitted: `application/json`.",
                _maybe({"type": "string", "pattern": _JSON_TYPE, "maxLength": MAX_MEDIA_TYPE}),
            ),
            "dataschema": _described(_SENT_AGAIN, _maybe(_text(1000))),
            "subject": _described("The attribute `subject` of the event.", _maybe(_text(MAX_TEXT))),
            "time": _described(
                _SENT_AGAIN, _maybe({"type": "string", "format": "date-time", "maxLength": MAX_TIME})
            ),
            "partitionkey": _described("Like `ordering_key` of an event.", _maybe(_text(MAX_ORDERING_KEY))),
            "tenantid": _described("Like `tenant_id` of an event.", _maybe(_NAME)),
            "tracestate": _described(_SENT_AGAIN, _maybe(_text(1000, least=0))),
            "traceparent": _described("The event's trace; takes precedence over the request's.", {}),
        },
    ),
    "not": {"required": ["data", "data_base64"]},
    "propertyNames": {"pattern": "^([a-z0-9]{1,50}|data_base64)$"},
    "additionalProperties": _EXTENSION,
    "examples": [
        {
            "specversion": "1.0",
            "type": "order.created",
            "source": "/shops/berlin",
            "id": "order-1001",
            "data": {"total": 19.99},
        }
    ],
}

_NEW_EVENT: Json = {
    **_record(
        {
            "event_type": _described(
                "Matched exactly: 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.", _OWN_TYPE
            ),
            "payload": _described("Any JSON value; stored, signed and sent byte for byte.", {}),
        },
        {
            "tenant_id": _described("The tenant. Omitted: the key's tenant, or `default`.", _maybe(_NAME)),
            "ordering_key": _described(
                "Ordered subscriptions deliver the events of one key one at a time, in order; others ignore it. "
                "`null` or omitted: one key for all events without a key.",
                _maybe(_ORDERING_KEY),
            ),
            "attributes": _described(
                f"What subscriptions can filter by, at most {MAX_ATTRIBUTES}. A name has {NAME_RULE}. A value is "
                f"{VALUE_RULE}. `null` or omitted: none.",
                _maybe(ATTRIBUTES_SCHEMA),
            ),
        },
    ),
    "additionalProperties": False,
    "examples": [
        {
            "event_type": "order.created",
            "payload": {"order": 1001, "total": 19.99},
            "attributes": {"order_id": "A-1001", "total": 19.99},
        }
    ],
}
_ANY_ITEM: Json = {
    "description": "as NewEvent, with an optional idempotency_key; an invalid item gets its own error"
}
_ITEMS: Json = {"type": "array", "minItems": 1, "maxItems": MAX_BATCH_ITEMS, "items": _ANY_ITEM}
_NEW_EVENTS: Json = {
    **_record(
        {
            "items": _described(
                "The events, each as for `POST /v1/events`, with an optional `idempotency_key`.",
                _ITEMS,
            )
        },
        {},
    ),
    "additionalProperties": False,
    "examples": [
        {
            "items": [
                {"event_type": "order.created", "payload": {"order": 1001}, "idempotency_key": "order-1001"},
                {"event_type": "order created", "payload": {"order": 1002}},
            ]
        }
    ],
}

_TEST_EVENT: Json = {
    **_record(
        {},
        {
            "event_type": _described(
                "A type that the subscription receives. Omitted: its first event type, or one that it matches.",
                _OWN_TYPE,
            ),
            "payload": _described('Any JSON value. Omitted: `{"test": true}`.', {}),
        },
    ),
    "additionalProperties": False,
    "examples": [{"event_type": "order.created", "payload": {"order": 1001, "total": 19.99}}],
}

OF_EVENTS: Json = {
    "TestEvent": _TEST_EVENT,
    "NewEvent": _NEW_EVENT,
    "NewEvents": _NEW_EVENTS,
    "CloudEvent": _CLOUD_EVENT,
}


_NAMED: Json = {"FilterPattern": FILTER_PATTERN_SCHEMA, "Filter": FILTER_SCHEMA}
"""Schemas that are parts of several models."""


def schemas_of_models(models: Iterable[type[BaseModel]]) -> Json:
    """Return the schemas by name, each with an example of the fields that have one, and with references to those of
    _NAMED."""
    found: Json = {}
    for model in models:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        found.update(schema.pop("$defs", {}))
        found[model.__name__] = _with_references(schema)
    named = {name: _with_references({**schema, "title": name}) for name, schema in _NAMED.items()}
    return named | {name: _with_example(schema) for name, schema in found.items()}


def _with_references(schema: Any) -> Any:
    for name, named in _NAMED.items():
        if schema == named:
            return {"$ref": reference_to(name)}
    if isinstance(schema, dict):
        return {key: _with_references(value) for key, value in cast("Json", schema).items()}
    return (
        [_with_references(one) for one in cast("list[Any]", schema)] if isinstance(schema, list) else schema
    )


def _with_example(schema: Json) -> Json:
    fields: Json = schema["properties"]
    example = {name: field["examples"][0] for name, field in fields.items() if "examples" in field}
    bare = {
        name: {key: value for key, value in field.items() if key != "examples"}
        for name, field in fields.items()
    }
    return {**schema, "properties": bare, "examples": [example]}
