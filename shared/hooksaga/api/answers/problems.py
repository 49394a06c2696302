"""What an error answers: RFC 9457, with a stable `code`."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from hooksaga.api.answers.answer import Answer, Count, UriReference, said

_DETAIL = "event_type has 1 to 100 characters out of A-Z a-z 0-9 _ . : / -"

ProblemType = Annotated[
    UriReference,
    said("Leads to the explanation of the error on this page.", "/v1/docs#error-invalid_event_type"),
]
Code = Annotated[str, said("The error's stable word. Programs compare this.", "invalid_event_type")]
Detail = Annotated[str, said("What is wrong with this request, for people.", _DETAIL)]
FieldAtFault = Annotated[
    str | UnsetType,
    said("The field, header or parameter that is at fault, where there is one.", "event_type"),
]


class ItemProblem(Answer):
    """What is wrong with one item of a batch."""

    type: ProblemType
    status: Annotated[Count, said("What the HTTP status would be, were the item alone.", 422)]
    code: Code
    detail: Detail
    field: FieldAtFault = UNSET


class Problem(Answer):
    """What went wrong."""

    type: ProblemType
    title: Annotated[str, said("The code in words.", "invalid event type")]
    status: Annotated[Count, said("The HTTP status.", 422)]
    detail: Detail
    code: Code
    request_id: Annotated[str, said("Names the request in our logs.", "req_5f2b8c0d9e1a4b7c6d3e2f10")]
    field: FieldAtFault = UNSET
