"""Attributes of an event: what is taken, and which attribute and rule an error names."""

import json

import pytest

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import all_attributes, number_text, read_attributes, values_by_name
from hooksaga.core.event_input import EventDraft, read_event
from tests.attribute_cases import BAD, GOOD, ONLY_JSON
from tests.case_names import case_name


def read(json_text: str) -> str:
    return read_attributes(json_text.encode())


@pytest.mark.parametrize("given", GOOD, ids=case_name)
def test_attributes_within_the_rules_are_taken_as_they_are(given: str) -> None:
    taken = read(given)
    assert json.loads(taken, parse_float=str, parse_int=str) == json.loads(
        given, parse_float=str, parse_int=str
    )


@pytest.mark.parametrize(("given", "place"), (BAD | ONLY_JSON).items(), ids=case_name)
def test_an_error_names_the_attribute(given: str, place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(given)
    assert (refused.value.code, refused.value.field, refused.value.status) == (
        "invalid_attributes",
        place,
        422,
    )
    assert str(refused.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("7", "attributes: must be an object of at most 20 names"),
        (json.dumps({f"a{n}": n for n in range(21)}), "attributes: must have at most 20 names, not 21"),
        ('{"a b": 1}', "attributes.a b: a name must have 1 to 64 characters from A-Z a-z 0-9 _ . -"),
        (
            json.dumps({"x" * 201: 1}),
            f"attributes.{'x' * 200}: a name must have 1 to 64 characters from A-Z a-z 0-9 _ . -",
        ),
        (
            '{"a": null}',
            (
                "attributes.a: must be a string of at most 200 characters without control characters, "
                "a number from -10^30 to 10^30 with at most 400 decimal places, or a boolean"
            ),
        ),
    ],
    ids=case_name,
)
def test_an_error_tells_the_rule(given: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(given)
    assert str(refused.value) == message


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


@pytest.mark.parametrize(
    ("given", "extracted", "both"),
    [
        ('{"n": 1.10}', "{}", '{"n": 1.10}'),
        ("{}", '{"n": 1.10, "t": true}', '{"n":1.10,"t":true}'),
        ('{"a":"given"}', '{"b":2e0,"a":"extracted"}', '{"b":2e0,"a":"given"}'),
    ],
    ids=["given", "extracted", "both"],
)
def test_a_given_attribute_wins_over_an_extracted_one(given: str, extracted: str, both: str) -> None:
    assert all_attributes(given, extracted) == both


@pytest.mark.parametrize(
    ("text", "kept"), [("1.10", "1.10"), ("1e30", "1e30"), ("1e31", None), ("1e-401", None)]
)
def test_a_number_within_the_rules_is_kept_as_it_is_written(text: str, kept: str | None) -> None:
    assert number_text(text) == kept
