"""Entries of the catalogue of event types."""

from typing import Annotated

from msgspec import Meta

from hooksaga.api.answers.answer import Answer, EventType, JsonText, Page, Time, described, one_of
from hooksaga.core.event_attributes import NAME_PATTERN as ATTRIBUTE_NAME_PATTERN
from hooksaga.core.event_catalogue import POINTER_PATTERN


class ExtractedAttributeRule(Answer):
    """An attribute that is extracted from the payload."""

    name: Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN), described("Name of the attribute.", "country")]
    pointer: Annotated[
        str,
        Meta(pattern=POINTER_PATTERN),
        described("Where it is in the payload: a JSON Pointer (RFC 6901).", "/customer/country"),
    ]
    kind: Annotated[
        str,
        one_of(("string", "number", "boolean")),
        described("Its kind. A value of another kind is not extracted.", "string"),
    ]


class ListedEventType(Answer):
    """An event type of the catalogue, without its schema and its sample."""

    name: EventType
    description: Annotated[
        str, described("What events of this type say, for subscribers.", "A customer placed an order.")
    ]
    attributes: Annotated[
        list[ExtractedAttributeRule],
        described("Attributes that are extracted from the payload of each event, for filters."),
    ]
    on_mismatch: Annotated[
        str,
        one_of(("reject", "warn")),
        described("What happens to an event whose payload does not match the schema.", "reject"),
    ]
    archived: Annotated[bool, described("Whether the type takes no more events.", False)]
    created_at: Annotated[Time, described("Time of creation.", "2026-03-01T07:55:10.118000Z")]
    updated_at: Annotated[Time, described("Time of the last change.", "2026-03-01T08:00:00.000000Z")]


class CatalogueEntry(ListedEventType):
    """An event type of the catalogue."""

    written_raw = ("schema", "sample")

    schema: Annotated[
        JsonText,
        described(
            "The JSON Schema (draft 2020-12) that payloads have to match; `null`: none.",
            {"type": "object", "required": ["order"]},
        ),
    ]
    sample: Annotated[
        JsonText,
        described("A sample payload; `null`: none.", {"order": 1001, "customer": {"country": "DE"}}),
    ]


class EventTypeList(Page[ListedEventType]):
    """A page of event types."""
