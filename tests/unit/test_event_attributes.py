"""Attributes of an event: what is taken, and which attribute and rule an error names."""

import json

import pytest

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import read_attributes, values_by_name
from hooksaga.core.event_input import EventDraft, read_event
from tests.attribute_cases import BAD, GOOD, ONLY_JSON


def read(json_text: str) -> str:
    return read_attributes(json_text.encode())


@pytest.mark.parametrize("given", GOOD, ids=ascii)
def test_attributes_within_the_rules_are_taken_as_they_are(given: str) -> None:
    taken = read(given)
    assert json.loads(taken, parse_float=str, parse_int=str) == json.loads(
        given, parse_float=str, parse_int=str
    )


@pytest.mark.parametrize(("given", "place"), (BAD | ONLY_JSON).items(), ids=lambda text: ascii(text)[:40])
def test_an_error_names_the_attribute(given: str, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(given)
    assert (refused.value.code, refused.value.field, refused.value.status) == (
        "invalid_attributes",
        place,
        422,
    )
    assert str(refused.value).startswith(f"{place}: ")


def test_of_equal_names_the_last_counts() -> None:
    assert read('{"a": 1, "b": 2, "a": "x"}') == '{"a":"x","b":2}'


def test_null_is_none() -> None:
    assert read("null") == "{}"


def test_an_event_has_its_attributes_beside_its_payload() -> None:
    body = b'{"event_type": "a", "payload": { "n": 1.10 }, "attributes": { "n": 1.10, "b": true }}'
    draft = read_event(body, max_bytes=1000, idempotency_keys=[], tenant_id=None)
    assert draft == EventDraft("a", '{ "n": 1.10 }', attributes='{"n":1.10,"b":true}')


def test_values_are_shown_as_they_were_written() -> None:
    assert values_by_name('{"s": "x", "n": 1.10, "t": true}') == {"s": "x", "n": "1.10", "t": "true"}
