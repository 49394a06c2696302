"""The objects that the HTTP API returns, one class each, with the types, descriptions and examples of their fields.

hooksaga.api.description generates the OpenAPI schemas from these classes (decision 0078). Values are not validated at
run time; the type checker ensures their types.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import Meta

from hooksaga.core.described_input import ATTRIBUTES_SCHEMA
from hooksaga.core.event_patterns import PATTERN
from hooksaga.core.flow_view import WaitsFor
from hooksaga.core.models import rfc3339
from hooksaga.core.saga import JobStatus, SagaStatus

NAME_PATTERN = "^[A-Za-z0-9_.:/-]{1,100}$"
EVENT_ID_PATTERN = "^evt_[0-9a-f]{32}$"
MAX_ID = 2**63 - 1

Item = TypeVar("Item")


class Answer(msgspec.Struct):
    """Base class of the objects. A field that is UNSET is omitted."""

    written_raw: ClassVar[tuple[str, ...]] = ()
    """Names of the fields whose values are JSON text and are written unchanged."""

    @classmethod
    def of(cls, row: object, **given: Any) -> Self:
        """Build the object from a row with the same field names; `given` has the other fields. Times become text."""
        names = [name for name in cls.__struct_fields__ if name not in given]
        return cls(**{name: _shown(getattr(row, name)) for name in names}, **given)

    def content(self) -> dict[str, Any]:
        """Return the object as JSON values."""
        return msgspec.to_builtins(self)


def _shown(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value


def described(words: str, *example: object) -> Meta:
    """Return the description of a field and an example. Nested objects have examples of their own."""
    return Meta(description=words, examples=list(example) or None)


def next_page(example: str | None = None) -> Meta:
    """Return the description of the field `next` of a page."""
    return described("Pass this as `cursor` to get the next page; `null` on the last page.", example)


def one_of(values: Iterable[str | int]) -> Meta:
    """Restrict a field to these values."""
    return Meta(extra_json_schema={"enum": list(values)})


def always(value: str | bool) -> Meta:
    """Restrict a field to one value."""
    return Meta(extra_json_schema={"const": value})


def either(*classes: type[Answer]) -> Meta:
    """Restrict a value to one of these objects."""
    return Meta(extra_json_schema={"anyOf": [{"$ref": reference_to(one.__name__)} for one in classes]})


def reference_to(name: str) -> str:
    """Return the path of a schema in the document."""
    return f"#/components/schemas/{name}"


Count = Annotated[int, Meta(ge=0)]
RowId = Annotated[int, Meta(ge=1, le=MAX_ID)]
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
EventId = Annotated[str, Meta(pattern=EVENT_ID_PATTERN)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
UriReference = Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})]
ErrorCode = Annotated[str, Meta(extra_json_schema={"$ref": reference_to("ErrorCode")})]
JsonText = Annotated[Any, Meta(extra_json_schema={})]
"""Any JSON value, as JSON text."""

EXAMPLE_EVENT_ID = "evt_0199c0de7d4e7a3b8f1e2d3c4b5a6978"

OwnEventId = Annotated[
    EventId,
    described("The event's id. Receivers get it as `webhook-id`.", EXAMPLE_EVENT_ID),
]
EventType = Annotated[Name, described("1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.", "order.created")]
EventTypes = Annotated[
    list[Annotated[str, Meta(pattern=PATTERN)]],
    described(
        "The event types that it receives: exact types, prefixes such as `invoice.*`, or `*`.",
        ["order.created"],
    ),
]
Filter = Annotated[
    Annotated[dict[str, Any], Meta(extra_json_schema={"$ref": reference_to("Filter")})] | None,
    described(
        "Which events of its types it receives, by their attributes; `null`: all of them.",
        {"country": ["DE", "AT"]},
    ),
]
TenantId = Annotated[Name, described("The tenant that owns it.", "default")]
SubscriptionId = Annotated[RowId, described("The subscription.", 7)]
SagaId = Annotated[RowId, described("The saga.", 4711)]
PayloadRemovedAt = Annotated[
    Time | None,
    described("When the payload was removed, by its age or by an erasure; `null`: it is there.", None),
]
IsErased = Annotated[bool, described("Whether an erasure removed everything that the producer sent.", False)]
AcceptedAt = Annotated[Time, described("Time of creation.", "2026-03-14T09:26:53.589793Z")]
RequeuedFrom = Annotated[RowId | None, described("The dead letter that was requeued as this saga.", None)]
ResentFrom = Annotated[
    RowId | None,
    described(
        "The ended saga that this one sends again, by a requeue or a resend; `null` for all others.", None
    ),
]
BulkOperationId = Annotated[
    RowId | None, described("The bulk operation that started the saga; `null` for all others.", None)
]
WaitsForWord = Annotated[
    Annotated[str, one_of(WaitsFor)] | None,
    described(
        "What a waiting saga waits for; otherwise `null`. `retry`: its next attempt is not due yet. `paused`, "
        "`retry_after`, `breaker_open`, `limited`: the state in `flow` of its subscription. `order`: an earlier event "
        "of its ordering key. `start`: nothing; it is about to start.",
        None,
    ),
]
WaitsForSagaId = Annotated[
    RowId | None,
    described(
        "For `order`: the previous saga of the ordering key; `null` while its event is not routed.", None
    ),
]
TestSubscriptionId = Annotated[
    RowId | None,
    described("The only subscription that receives it, for a test event; otherwise `null`.", None),
]
LastErrorCode = Annotated[
    ErrorCode | None, described("Error code of the last failure; kept after a later success.", None)
]
SagaState = Annotated[str, one_of(SagaStatus), described("Current state.", SagaStatus.COMPLETED.value)]
JobState = Annotated[str, one_of(JobStatus), described("Current state.", JobStatus.COMPLETED.value)]
Payload = Annotated[
    JsonText,
    described(
        "Any JSON value; stored, signed and sent byte for byte. `null` if it was removed.",
        {"order": 1001, "total": 19.99},
    ),
]
Attributes = Annotated[
    JsonText,
    Meta(extra_json_schema=ATTRIBUTES_SCHEMA),
    described(
        "What the producer gave beside the payload, for filters.", {"order_id": "A-1001", "total": 19.99}
    ),
]

ExtractedAttributes = Annotated[
    JsonText,
    Meta(extra_json_schema=ATTRIBUTES_SCHEMA),
    described(
        "What was extracted from the payload, as the catalogue says for its type. A name in `attributes` takes "
        "precedence.",
        {"country": "DE"},
    ),
]


class Page(Answer, Generic[Item]):
    """One page of a list."""

    items: Annotated[list[Item], described("The items of this page.")]
    next: Annotated[str | None, next_page()]
