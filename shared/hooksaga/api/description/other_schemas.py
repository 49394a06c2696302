"""Schemas without a class: error codes, a choice between two responses, and documents."""

from typing import Any

from hooksaga.api.answers.answer import reference_to
from hooksaga.api.answers.bulk_operations import BulkCount, BulkOperationStarted
from hooksaga.core.outcomes import NO_PUBLIC_ADDRESS, ErrorCode

Json = dict[str, Any]

OTHER_SCHEMAS: Json = {
    "BulkOperationOrCount": {
        "anyOf": [{"$ref": reference_to(one.__name__)} for one in (BulkOperationStarted, BulkCount)]
    },
    "ErrorCode": {
        "description": "The reason why an attempt failed.",
        "type": "string",
        "anyOf": [
            {"enum": [*(code.value for code in ErrorCode), NO_PUBLIC_ADDRESS]},
            {"pattern": "^http_[0-9]{3}$"},
        ],
    },
    "OpenApi": {
        "type": "object",
        "properties": {
            "openapi": {"type": "string", "description": "The version of OpenAPI."},
            "paths": {"type": "object", "description": "The routes."},
        },
        "required": ["openapi", "paths"],
    },
    "ReferencePage": {"type": "string", "description": "an HTML page"},
}
