"""The check of an entry of the catalogue before it is stored, apart from the rest because it needs a large library."""

from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_catalogue import MAX_SCHEMA_BYTES, read_payload
from hooksaga.core.schema_bounds import InvalidSchema
from hooksaga.operations.event_types import EventTypeContent


def check_content(content: EventTypeContent) -> None:
    """Raise InvalidInput `invalid_schema` with the place in the schema, or `invalid_sample` with that in the sample."""
    if content.schema is None:
        return
    if len(content.schema.encode()) > MAX_SCHEMA_BYTES:
        raise _invalid_schema("", f"must have at most {MAX_SCHEMA_BYTES} bytes")
    try:
        schema = compile_schema(content.schema)
    except InvalidSchema as error:
        raise _invalid_schema(error.path, str(error)) from None
    found = None if content.sample is None else schema.mismatch(read_payload(content.sample))
    if found is not None:
        field = f"sample{found.pointer}"
        raise InvalidInput("invalid_sample", f"{field}: {found.rule}", field=field, status=422)


def _invalid_schema(path: str, rule: str) -> InvalidInput:
    field = f"schema{path}"
    return InvalidInput("invalid_schema", f"{field}: {rule}", field=field, status=422)
