"""What the HTTP API answers, one class for each object: what it is made of, how it is written, how it is described.

A field has a type, words and an example. hooksaga.api.description makes the schemas of the OpenAPI document from them
(decision 0078). Nothing is checked when an answer is made: the type checker has seen to it.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import Meta

from hooksaga.core.models import rfc3339
from hooksaga.core.saga import JobStatus, SagaStatus

NAME_PATTERN = "^[A-Za-z0-9_.:/-]{1,100}$"
EVENT_ID_PATTERN = "^evt_[0-9a-f]{32}$"
MAX_ID = 2**63 - 1

Item = TypeVar("Item")


class Answer(msgspec.Struct):
    """One object. A field that is UNSET is left out."""

    written_raw: ClassVar[str | None] = None
    """The name of a field whose value is JSON text that is put in as it is stored."""

    @classmethod
    def of(cls, row: object, **given: Any) -> Self:
        """With what a row has under the same names, times as text; the fields that it has not are given."""
        names = [name for name in cls.__struct_fields__ if name not in given]
        return cls(**{name: _shown(getattr(row, name)) for name in names}, **given)

    def content(self) -> dict[str, Any]:
        """As JSON values."""
        return msgspec.to_builtins(self)


def _shown(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value


def said(words: str, *example: object) -> Meta:
    """What a field means, and an example. An object of our own, and a list of them, bring their examples along."""
    return Meta(description=words, examples=list(example) or None)


def one_of(values: Iterable[str | int]) -> Meta:
    """Of a field that has no other values."""
    return Meta(extra_json_schema={"enum": list(values)})


def always(value: str | bool) -> Meta:
    """Of a field that has only this value."""
    return Meta(extra_json_schema={"const": value})


def either(*classes: type[Answer]) -> Meta:
    """Of a value that is one of these objects."""
    return Meta(extra_json_schema={"anyOf": [{"$ref": reference_to(one.__name__)} for one in classes]})


def reference_to(name: str) -> str:
    """Where the document has the schema of this name."""
    return f"#/components/schemas/{name}"


Count = Annotated[int, Meta(ge=0)]
RowId = Annotated[int, Meta(ge=1, le=MAX_ID)]
Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
EventId = Annotated[str, Meta(pattern=EVENT_ID_PATTERN)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
UriReference = Annotated[str, Meta(extra_json_schema={"format": "uri-reference"})]
ErrorCode = Annotated[str, Meta(extra_json_schema={"$ref": reference_to("ErrorCode")})]
JsonText = Annotated[Any, Meta(extra_json_schema={})]
"""Any JSON value, as its text."""

EXAMPLE_EVENT_ID = "evt_0199c0de7d4e7a3b8f1e2d3c4b5a6978"

OwnEventId = Annotated[
    EventId,
    said("The event's id, everywhere: also the `webhook-id` that receivers see.", EXAMPLE_EVENT_ID),
]
EventType = Annotated[
    Name, said("Matched exactly: 1 to 100 of the characters `A-Z a-z 0-9 _ . : / -`.", "order.created")
]
TenantId = Annotated[Name, said("Whose it is.", "default")]
SubscriptionId = Annotated[RowId, said("The subscription.", 7)]
SagaId = Annotated[RowId, said("The saga.", 4711)]
AcceptedAt = Annotated[Time, said("When it was stored.", "2026-03-14T09:26:53.589793Z")]
RequeuedFrom = Annotated[RowId | None, said("The dead letter that this saga was made from.", None)]
BulkOperationId = Annotated[
    RowId | None, said("The bulk operation that started the saga; `null` for all others.", None)
]
SagaState = Annotated[str, one_of(SagaStatus), said("Where it stands.", SagaStatus.COMPLETED.value)]
JobState = Annotated[str, one_of(JobStatus), said("Where it stands.", JobStatus.COMPLETED.value)]
Payload = Annotated[
    JsonText, said("Any JSON value, kept, signed and sent to the byte.", {"order": 1001, "total": 19.99})
]


class Page(Answer, Generic[Item]):
    """A page of a list."""

    items: Annotated[list[Item], said("The rows of this page.")]
    next: Annotated[str | None, said("To be passed as `cursor` for the next page; `null` on the last.", None)]
