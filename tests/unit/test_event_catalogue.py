"""Attributes that are extracted from a payload, and what the type of an event allows."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import all_attributes, read_attributes
from hooksaga.core.event_catalogue import (
    AttributeKind,
    AttributeRule,
    Checked,
    KnownType,
    Mismatch,
    check_event,
    extract,
    is_pointer,
    pointer_of,
    read_payload,
    unknown_type,
    value_at,
)
from hooksaga.core.event_input import MAX_QUOTED

PAYLOAD = (
    '{"s": "DE", "n": 1.10, "i": 820982911946154508, "b": false, "z": null, '
    '"o": {"a/b": ["x", {"": 7}], "m~n": 1, "~1": 2}}'
)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/s", "DE"),
        ("/o/a~1b/0", "x"),
        ("/o/a~1b/1/", 7),
        ("/o/m~0n", 1),
        ("/o/~01", 2),
        ("/o/a~1b/2", None),
        ("/o/a~1b/-1", None),
        ("/o/a~1b/00", None),
        ("/s/0", None),
        ("/none/a", None),
        ("/none", None),
        ("/z", None),
    ],
)
def test_a_pointer_finds_its_value(pointer: str, value: object) -> None:
    assert is_pointer(pointer)
    assert value_at(read_payload(PAYLOAD), pointer) == value


def test_a_pointer_has_five_hundred_characters() -> None:
    assert is_pointer("/" + "a" * 499)


@pytest.mark.parametrize("text", ["s", "/a~", "/a~2", "#/a", "/" + "a" * 500, "/a\n~"])
def test_other_text_is_no_pointer(text: str) -> None:
    assert not is_pointer(text)


@given(st.lists(st.text(max_size=5), max_size=5))
def test_a_pointer_leads_back(path: list[str]) -> None:
    payload: Any = "here"
    for name in reversed(path):
        payload = {name: payload}
    assert value_at(payload, pointer_of(path)) == "here"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], ""),
        (["a/b", 0, "~1"], "/a~1b/0/~01"),
        (["x" * 199], "/" + "x" * 199),
        (["x" * 200], "/" + "x" * 199 + "…"),
    ],
)
def test_the_pointer_of_a_path_is_cut_to_two_hundred_characters(path: list[str | int], text: str) -> None:
    assert pointer_of(path) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-12", -12),
        ("9" * 18, 999_999_999_999_999_999),
        ("9" * 19, Decimal("9" * 19)),
        ("9" * 5000, Decimal("9" * 5000)),
        ("1.10", Decimal("1.10")),
        ("1e400", Decimal("1e400")),
        ("1e9999999999999999999", math.inf),
        ("1e-9999999999999999999", 0.0),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_payload_has_exact_numbers(text: str, number: float | Decimal) -> None:
    (read,) = read_payload(f"[{text}]")
    assert (type(read), str(read)) == (type(number), str(number))


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("string", '"DE"', '"DE"'),
        ("string", '""', '""'),
        ("string", json.dumps("x" * 200), json.dumps("x" * 200)),
        ("string", json.dumps("x" * 201), None),
        ("string", '"a\\nb"', None),
        ("string", "7", None),
        ("number", "1.10", "1.10"),
        ("number", "820982911946154508123", "820982911946154508123"),
        ("number", "1e31", None),
        ("number", "1e99999999999999999999", None),
        ("number", "true", None),
        ("number", '"7"', None),
        ("boolean", "true", "true"),
        ("boolean", "0", None),
        ("boolean", "null", None),
        ("string", "[]", None),
    ],
)
def test_a_value_of_another_kind_is_not_extracted(
    kind: AttributeKind, payload: str, text: str | None
) -> None:
    found = extract([AttributeRule("a", "/v", kind)], read_payload(f'{{"v": {payload}}}'))
    assert found == ("{}" if text is None else f'{{"a":{text}}}')


def test_of_two_rules_with_one_name_the_first_that_finds_a_value_counts() -> None:
    rules = [AttributeRule("a", f"/{name}", "number") for name in ("none", "n", "i")]
    assert extract(rules, read_payload(PAYLOAD)) == '{"a":1.10}'


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists))
def test_what_is_extracted_can_be_given(value: Any) -> None:
    try:
        payload = json.dumps({"v": value}, allow_nan=False)
    except ValueError:
        return
    for kind in ("string", "number", "boolean"):
        found = extract([AttributeRule("a", "/v", kind)], read_payload(payload))
        assert read_attributes(found.encode()) == found


@pytest.mark.parametrize(
    ("given_attributes", "extracted", "both"),
    [
        ('{"a":1}', "{}", {"a": 1}),
        ("{}", '{"a":1.10}', {"a": 1.10}),
        ('{"a":"given"}', '{"a":"extracted","b":true}', {"a": "given", "b": True}),
    ],
)
def test_what_was_given_takes_precedence(given_attributes: str, extracted: str, both: dict[str, Any]) -> None:
    assert json.loads(all_attributes(given_attributes, extracted)) == both


class Only:
    """A schema that only one payload matches."""

    def __init__(self, payload: object, pointer: str = "/a") -> None:
        self._payload, self._pointer = payload, pointer

    def mismatch(self, payload: object) -> Mismatch | None:
        return None if payload == self._payload else Mismatch(self._pointer, "is wrong")


def test_a_payload_that_does_not_match_is_refused_or_warned_of() -> None:
    rules = (AttributeRule("a", "/a", "number"),)
    with pytest.raises(InvalidInput, match=r"^payload/a: is wrong$") as refused:
        check_event(KnownType("t", rules, Only({"a": 2})), '{"a": 1}')
    error = refused.value
    assert (error.code, error.field, error.status) == ("payload_mismatch", "payload/a", 422)
    warned = check_event(KnownType("t", rules, Only({"a": 2}), "warn"), '{"a": 1}')
    assert warned == Checked('{"a":1}', Mismatch("/a", "is wrong"))


def test_the_field_of_a_mismatch_is_cut_to_what_can_be_read() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event(KnownType("t", schema=Only({"a": 2}, "/" + "a" * 300)), "{}")
    assert refused.value.field == "payload/" + "a" * (MAX_QUOTED - 8) + "…"


@pytest.mark.parametrize(
    ("known", "extracted"),
    [
        (KnownType("t"), "{}"),
        (KnownType("t", schema=Only({"a": 1})), "{}"),
        (KnownType("t", (AttributeRule("a", "/a", "number"),)), '{"a":1}'),
        (KnownType("t", (AttributeRule("a", "/a", "number"),), Only({"a": 1})), '{"a":1}'),
    ],
)
def test_a_type_extracts_its_attributes_with_and_without_a_schema(known: KnownType, extracted: str) -> None:
    assert check_event(known, '{"a": 1}') == Checked(extracted)


def test_an_archived_type_takes_nothing() -> None:
    message = "^the event type t is archived and takes no more events$"
    with pytest.raises(InvalidInput, match=message) as refused:
        check_event(KnownType("t", archived=True), "{}")
    error = refused.value
    assert (error.code, error.field, error.status) == ("event_type_archived", "event_type", 422)


MANY = ["order.created", *(f"shop{n % 40}.order{n}.created" for n in range(2000))]


@pytest.mark.parametrize(
    ("name", "known", "like_it"),
    [
        ("x", [], ""),
        ("x", ["order.created", "invoice.sent"], ""),
        ("order.craeted", ["invoice.sent", "order.created"], "order.created"),
        ("order.paid", [f"order.paid{n}" for n in range(5)], "order.paid4, order.paid3, order.paid2"),
        ("rder.created", MANY, "order.created, shop9.order9.created, shop8.order8.created"),
        ("order.creatd", MANY, "order.created, shop9.order9.created, shop8.order8.created"),
        ("order.cr___ted", [*(f"zzzzz.{n}" for n in range(99)), "order.created"], "order.created"),
        (
            "shop7.order7.craeted",
            MANY,
            "shop7.order7.created, shop7.order87.created, shop7.order47.created",
        ),
    ],
    ids=range(8),
)
def test_an_unknown_type_is_answered_with_similar_ones(name: str, known: list[str], like_it: str) -> None:
    error = unknown_type(name, known)
    hint = f"; known types like it: {like_it}" if like_it else ""
    assert str(error) == f"the event type {name} is not in the catalogue{hint}"
    assert (error.code, error.field, error.status) == ("unknown_event_type", "event_type", 422)
