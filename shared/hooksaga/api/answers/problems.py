"""Errors, as RFC 9457 problem details with a stable `code`."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from hooksaga.api.answers.answer import Answer, Count, UriReference, described

_DETAIL = "event_type must have 1 to 100 characters from A-Z a-z 0-9 _ . : / -"

ProblemType = Annotated[
    UriReference,
    described("Link to the explanation of the error on this page.", "/v1/docs#error-invalid_event_type"),
]
Code = Annotated[str, described("Stable error code, for programs.", "invalid_event_type")]
Detail = Annotated[str, described("Explanation of the error, for people.", _DETAIL)]
FieldAtFault = Annotated[
    str | UnsetType,
    described("The invalid field, header or parameter, if there is one.", "event_type"),
]


class ItemProblem(Answer):
    """The error of one item of a batch."""

    type: ProblemType
    status: Annotated[Count, described("The HTTP status that the item alone would get.", 422)]
    code: Code
    detail: Detail
    field: FieldAtFault = UNSET


class Problem(Answer):
    """An error."""

    type: ProblemType
    title: Annotated[str, described("Short description of the code.", "invalid event type")]
    status: Annotated[Count, described("The HTTP status.", 422)]
    detail: Detail
    code: Code
    request_id: Annotated[str, described("Id of the request in the logs.", "req_5f2b8c0d9e1a4b7c6d3e2f10")]
    field: FieldAtFault = UNSET
