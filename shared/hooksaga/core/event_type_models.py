"""The entry of an event type in a request, checked by pydantic."""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from hooksaga.core.event_attributes import MAX_ATTRIBUTES
from hooksaga.core.event_attributes import NAME_PATTERN as ATTRIBUTE_NAME_PATTERN
from hooksaga.core.event_catalogue import (
    MAX_DESCRIPTION,
    MAX_POINTER,
    MAX_SCHEMA_BYTES,
    POINTER_PATTERN,
    POINTER_RULE,
    REJECT,
    AttributeKind,
    OnMismatch,
    is_pointer,
)
from hooksaga.core.field_types import StrictModel


def _pointer(text: str) -> str:
    if not is_pointer(text):
        raise ValueError(f"must be {POINTER_RULE}, of at most {MAX_POINTER} characters")
    return text


def _printable(text: str) -> str:
    if any((ord(character) < 32 and character != "\n") or ord(character) == 127 for character in text):
        raise ValueError("control characters are not allowed, except line feeds")
    text.encode()  # an unpaired surrogate cannot be stored
    return text


Pointer = Annotated[
    str,
    AfterValidator(_pointer),
    WithJsonSchema({"type": "string", "maxLength": MAX_POINTER, "pattern": POINTER_PATTERN}),
]


class ExtractedAttribute(StrictModel):
    """One attribute to extract from the payload."""

    name: Annotated[str, Field(pattern=ATTRIBUTE_NAME_PATTERN)] = Field(
        description="Name of the attribute.", examples=["country"]
    )
    pointer: Pointer = Field(
        description="Where it is in the payload: a JSON Pointer (RFC 6901).", examples=["/customer/country"]
    )
    kind: AttributeKind = Field(
        description="Its kind. A value of another kind is not extracted.", examples=["string"]
    )


class NewEventType(StrictModel):
    """The body of PUT /v1/event-types/{name}: the whole entry. Omitted fields have their defaults."""

    model_config = ConfigDict(validate_by_alias=True, validate_by_name=False)

    description: Annotated[
        str,
        Field(
            max_length=MAX_DESCRIPTION,
            json_schema_extra={"pattern": r"^[^\u0000-\u0009\u000b-\u001f\u007f]*$"},
        ),
        AfterValidator(_printable),
    ] = Field(
        default="",
        description="What events of this type say, for subscribers.",
        examples=["A customer placed an order."],
    )
    attributes: Annotated[list[ExtractedAttribute], Field(max_length=MAX_ATTRIBUTES)] = Field(
        default_factory=list[ExtractedAttribute],
        description="Attributes that are extracted from the payload of each event, for filters. Of several with "
        "one name, the first counts whose value can be extracted.",
    )
    payload_schema: dict[str, Any] | None = Field(
        default=None,
        alias="schema",
        description=f"A JSON Schema (draft 2020-12) of at most {MAX_SCHEMA_BYTES} bytes that payloads have to match.",
        examples=[{"type": "object", "required": ["order"]}],
    )
    on_mismatch: OnMismatch = Field(
        default=REJECT,
        description="`reject`: an event whose payload does not match is refused. `warn`: it is accepted, with a "
        "warning.",
    )
    sample: Any = Field(
        default=None,
        description="A payload that subscribers see, and that test events have. It must match the schema.",
        examples=[{"order": 1001, "customer": {"country": "DE"}}],
    )
    archived: bool = Field(
        default=False, description="`true`: the type takes no more events. Its subscriptions stay."
    )
