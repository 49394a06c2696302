"""Schemas of events as they come in, which code reads from raw bytes, and of the answers to them."""

from hooksaga.api.openapi_schemas import (
    ANY_JSON,
    EVENT_ID,
    FLAG,
    NAME,
    NAME_PATTERN,
    TIME,
    Json,
    maybe,
    record,
)
from hooksaga.core.described_input import BASE64_JSON_FORMAT
from hooksaga.core.event_input import MAX_BATCH_ITEMS, OWN_SOURCE, RESERVED_PREFIX

KEY_PATTERN = "^[!-~]([ -~]{0,253}[!-~])?$"
KEY: Json = {"type": "string", "pattern": KEY_PATTERN}

OWN_TYPE_PATTERN = f"^(?!{RESERVED_PREFIX.replace('.', '[.]')}){NAME_PATTERN.removeprefix('^')}"
"""Of types that others than hooksaga may send."""

_OWN_TYPE: Json = {"type": "string", "pattern": OWN_TYPE_PATTERN}
_CHARACTER = r"[^\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\ufffe\uffff]"
_JSON_TYPE = (
    r"^ *[A-Za-z0-9!#$&^_.-]+/([A-Za-z0-9!#$&^_.-]+[+])?[Jj][Ss][Oo][Nn] *"
    r"(; *[Cc][Hh][Aa][Rr][Ss][Ee][Tt] *= *\"?[Uu][Tt][Ff]-?8\"? *)?$"
)


def _text(most: int | None = None, *, but: str = "") -> Json:
    return {"type": "string", "pattern": f"^{but}{_CHARACTER}{'+' if most is None else f'{{1,{most}}}'}$"}


_EXTENSION: Json = {
    "anyOf": [
        {"type": "string", "pattern": f"^{_CHARACTER}*$"},
        FLAG,
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
_CLOUD_EVENT: Json = {
    **record(
        {
            "specversion": {"const": "1.0"},
            "id": _text(255),
            "source": _text(255, but=f"(?!{OWN_SOURCE}$)"),
            "type": _OWN_TYPE,
        },
        {
            "data": ANY_JSON,
            "data_base64": maybe(_DATA_BASE64),
            "datacontenttype": maybe({"type": "string", "pattern": _JSON_TYPE}),
            "dataschema": maybe(_text()),
            "subject": maybe(_text()),
            "time": maybe(TIME),
            "tenantid": maybe(NAME),
            "traceparent": {},
        },
    ),
    "not": {"required": ["data", "data_base64"]},
    "propertyNames": {"pattern": "^([a-z0-9]{1,50}|data_base64)$"},
    "additionalProperties": _EXTENSION,
}

_ANY_ITEM: Json = {"description": "as NewEvent, with an idempotency_key; a bad item is answered alone"}
_ACCEPTED: Json = {"id": EVENT_ID, "event_type": NAME, "created_at": TIME, "duplicate": FLAG}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS: Json = {
    "NewEvent": record(
        {"event_type": _OWN_TYPE, "payload": ANY_JSON}, {"tenant_id": maybe(NAME)}, closed=True
    ),
    "NewEvents": record(
        {"items": {"type": "array", "minItems": 1, "maxItems": MAX_BATCH_ITEMS, "items": _ANY_ITEM}},
        closed=True,
    ),
    "CloudEvent": _CLOUD_EVENT,
    "AcceptedEvent": record(_ACCEPTED),
    "BatchAnswer": record(
        {
            "items": {
                "type": "array",
                "items": {"anyOf": [_ref("AcceptedEvent"), record({"error": _ref("ItemProblem")})]},
            }
        }
    ),
}
