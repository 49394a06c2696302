"""JSON Schemas of payloads (draft 2020-12), checked by jsonschema-rs.

Patterns run on an engine without backtracking, so their time is linear. Nothing is ever fetched. The library is loaded
with the first schema: most processes have none.
"""

import json
from typing import TYPE_CHECKING, Any

from hooksaga.core.event_catalogue import Mismatch, pointer_of
from hooksaga.core.schema_bounds import InvalidSchema, check_bounds

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAX_RULE = 300
_PATTERN_BYTES = 1_000_000
"""Limit of one compiled pattern."""


class CompiledSchema:
    """A schema that payloads are checked by. Raises InvalidSchema for text that compile_schema would refuse."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._validator = _validator_of(schema)

    def mismatch(self, payload: object) -> Mismatch | None:
        """Return the first mismatch. Its rule quotes the schema and never the payload."""
        import jsonschema_rs

        try:
            self._validator.validate(payload)
        except jsonschema_rs.ValidationError as error:
            return Mismatch(pointer_of(error.instance_path), _shortened(error.message))
        except ValueError:  # Python converts integers of up to 4,300 digits
            return Mismatch("", "a number has too many digits to be checked")
        return None


def compile_schema(text: str) -> CompiledSchema:
    """Return the compiled schema. text: a JSON object. Raises InvalidSchema with the place and the rule."""
    schema: Any = json.loads(text)
    if not isinstance(schema, dict):
        raise InvalidSchema("", "must be an object")
    return CompiledSchema(schema)  # pyright: ignore[reportUnknownArgumentType]


def _validator_of(schema: dict[str, Any]) -> "Draft202012Validator":
    import jsonschema_rs

    patterns = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    try:
        check_bounds(schema)
        return jsonschema_rs.Draft202012Validator(
            schema, pattern_options=patterns, validate_formats=False, offline=True, mask="the value"
        )
    except jsonschema_rs.ValidationError as error:
        raise InvalidSchema(pointer_of(error.instance_path), _shortened(error.message)) from None
    except (ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, InvalidSchema):
            raise
        raise InvalidSchema("", _shortened(str(error))) from None


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_RULE else f"{text[:MAX_RULE]}…"
