"""Answers of the API are classes: how they are made of rows, written, and described."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated

import pytest
from msgspec import UNSET, UnsetType

from hooksaga.api import error_code_views
from hooksaga.api.answers.answer import Answer, Count, EventId, JsonText, Page, RowId, Time, described
from hooksaga.api.description.schemas import schemas_of
from hooksaga.api.json_answers import answer_response
from hooksaga.api.openapi import openapi_document


class Part(Answer):
    """A part."""

    at: Annotated[Time, described("When.", "2026-01-02T03:04:05.000000Z")]


class Whole(Answer):
    """A whole."""

    written_raw = ("payload",)

    id: Annotated[RowId, described("The number.", 7)]
    ended_at: Annotated[Time | None, described("When it ended.", None)]
    part: Annotated[Part | None, described("What it has.")]
    parts: Annotated[list[Part], described("All it has.")]
    payload: Annotated[JsonText, described("What it carries.", {"a": 1})]
    more: Annotated[Count | UnsetType, described("Only sometimes.", 3)] = UNSET


class Wholes(Page[Whole]):
    """A page."""


@dataclass
class Row:
    id: int
    ended_at: datetime | None
    secret: str = "not shown"


def whole(ended_at: datetime | None = None) -> Whole:
    part = Part("2026-01-02T03:04:05.000000Z")
    return Whole.of(Row(7, ended_at), part=part, parts=[part], payload='{"total":1.10}', more=UNSET)


def test_a_row_gives_the_fields_of_the_same_name_with_times_as_text() -> None:
    at = datetime(2026, 1, 2, 4, 4, 5, tzinfo=timezone(timedelta(hours=1)))
    assert whole(at).content() == {
        "id": 7,
        "ended_at": "2026-01-02T03:04:05.000000Z",
        "part": {"at": "2026-01-02T03:04:05.000000Z"},
        "parts": [{"at": "2026-01-02T03:04:05.000000Z"}],
        "payload": '{"total":1.10}',
    }


def test_a_field_that_neither_the_row_nor_the_caller_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="part"):
        Whole.of(Row(7, datetime.now(UTC)), payload="1", parts=[], more=UNSET)
    with pytest.raises(TypeError, match="unheard"):
        Part.of(Row(7, None), at="2026-01-02T03:04:05.000000Z", unheard=1)


def test_a_payload_is_written_as_it_is_stored() -> None:
    assert answer_response(whole()).body == (
        b'{"id":7,"ended_at":null,"part":{"at":"2026-01-02T03:04:05.000000Z"},'
        b'"parts":[{"at":"2026-01-02T03:04:05.000000Z"}],"payload":{"total":1.10}}'
    )


def test_a_lone_surrogate_is_escaped() -> None:
    assert answer_response(Part("\ud800é")).body == b'{"at":"\\ud800\\u00e9"}'


def test_an_object_has_the_examples_of_its_fields() -> None:
    part = {"at": "2026-01-02T03:04:05.000000Z"}
    example = {"id": 7, "ended_at": None, "part": part, "parts": [part], "payload": {"a": 1}, "more": 3}
    schemas = schemas_of([Wholes])
    assert schemas["Whole"]["examples"] == [example]
    assert schemas["Wholes"]["examples"] == [{"items": [example], "next": None}]
    assert "more" not in schemas["Whole"]["required"]
    assert schemas["Whole"]["properties"]["id"] == {
        "description": "The number.",
        "type": "integer",
        "minimum": 1,
        "maximum": 2**63 - 1,
    }


def test_a_field_without_words_or_example_is_refused() -> None:
    class Mute(Answer):
        id: EventId

    class Bare(Answer):
        id: Annotated[EventId, described("The event.")]

    with pytest.raises(ValueError, match=r"Mute\.id has no"):
        schemas_of([Mute])
    with pytest.raises(ValueError, match=r"Bare\.id has no example"):
        schemas_of([Bare])


def test_every_error_code_of_an_answer_is_masked_for_subscribers() -> None:
    """shown_content knows them by the names of their fields."""
    schemas = openapi_document()["components"]["schemas"]
    fields = {
        name
        for schema in schemas.values()
        for name, field in schema.get("properties", {}).items()
        for choice in (field, *field.get("anyOf", []))
        if choice.get("$ref") == "#/components/schemas/ErrorCode"
    }
    assert fields == error_code_views._FIELDS
