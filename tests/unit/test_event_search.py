"""What a person types to find an event: parts of ids, and attributes."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from hooksaga.core.attribute_search import AttributeFilter, read_attribute, values_of
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_ids import IdParts, read_id_parts, short_event_id, time_of_id

DIGITS = "0199c0de7d4e7a3b8f1e2d3c4b5a6978"


def test_a_shortened_id_is_read_again() -> None:
    short = short_event_id(UUID(DIGITS))
    assert short == "evt_0199c0de…4b5a6978"
    (parts,) = read_id_parts(short)
    assert parts == IdParts("0199c0de", "4b5a6978")
    assert parts.first <= UUID(DIGITS) <= parts.last


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        (f"evt_{DIGITS}", [(DIGITS, "")]),
        (f" EVT_{DIGITS.upper()} ", [(DIGITS, "")]),
        (str(UUID(DIGITS)), [(DIGITS, "")]),
        ("evt_0199c0de", [("0199c0de", "")]),
        ("4b5a6978", [("4b5a6978", ""), ("", "4b5a6978")]),
        ("5a6978", [("", "5a6978")]),
        ("...5a6978", [("", "5a6978")]),
        ("evt_0199c0de...", [("0199c0de", "")]),
        ("evt_0199c0d", []),
        ("…6978", []),
        (f"evt_{DIGITS}0", []),
        (f"{DIGITS[:20]}…{DIGITS[20:]}", [(DIGITS[:20], DIGITS[20:])]),
        (f"{DIGITS[:20]}…{DIGITS[19:]}", []),
        ("ORD-10100", []),
        ("", []),
        ("…", []),
        ("10100", []),
    ],
)
def test_only_parts_of_an_id_are_taken_for_some(text: str, readings: list[tuple[str, str]]) -> None:
    assert read_id_parts(text) == [IdParts(*one) for one in readings]


@pytest.mark.parametrize(
    ("webhook_id", "moment"),
    [
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)),
        ("017f22e2-79b1-7fff-bfff-ffffffffffff", datetime(2022, 2, 22, 19, 22, 22, 1000, tzinfo=UTC)),
        ("919108f7-52d1-4320-9bac-f847db4148a8", None),
        ("2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", None),
    ],
    ids=["the example of RFC 9562", "a millisecond later", "version 4", "version 8"],
)
def test_an_id_of_version_7_tells_when_it_was_made(webhook_id: str, moment: datetime | None) -> None:
    found = time_of_id(UUID(webhook_id))
    assert found == moment
    assert found is None or found.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("ORD-1", ('"ORD-1"',)),
        ("42", ('"42"', "42")),
        ("-1.50", ('"-1.50"', "-1.50")),
        ("true", ('"true"', "true")),
        ("false", ('"false"', "false")),
        ("042", ('"042"',)),
        ("1e5", ('"1e5"',)),
        ("null", ('"null"',)),
        ('a"b', ('"a\\"b"',)),
        ("", ('""',)),
    ],
)
def test_a_text_can_be_a_string_and_what_it_is_written_like(text: str, values: tuple[str, ...]) -> None:
    assert values_of(text) == values


def test_a_value_may_have_colons() -> None:
    assert read_attribute("at:12:30") == AttributeFilter("at", ('"12:30"',))


@pytest.mark.parametrize("wrong", ["", "x", ":x", "a b:c", "é:1", f"{'n' * 65}:1", f"n:{'v' * 201}"])
def test_what_has_no_name_and_value_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_attribute(wrong)
    error = refused.value
    assert (error.code, error.field, error.status) == ("invalid_parameter", "attribute", 422)
    assert str(error) == "attribute must be a name and a value, such as order_id:ORD-10100"


def test_the_longest_name_and_value_are_read() -> None:
    name, value = "n" * 64, "v" * 200
    assert read_attribute(f"{name}:{value}") == AttributeFilter(name, (f'"{value}"',))
