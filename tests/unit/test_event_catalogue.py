"""Attributes that are extracted from a payload, and what the type of an event allows."""

import json
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

PAYLOAD = (
    '{"s": "DE", "n": 1.10, "i": 820982911946154508, "b": false, "z": null, '
    '"o": {"a/b": ["x", {"": 7}], "m~n": 1}}'
)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/s", "DE"),
        ("/o/a~1b/0", "x"),
        ("/o/a~1b/1/", 7),
        ("/o/m~0n", 1),
        ("/o/a~1b/2", None),
        ("/o/a~1b/-1", None),
        ("/o/a~1b/00", None),
        ("/s/0", None),
        ("/none", None),
        ("/z", None),
    ],
)
def test_a_pointer_finds_its_value(pointer: str, value: object) -> None:
    assert is_pointer(pointer)
    assert value_at(read_payload(PAYLOAD), pointer) == value


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


class Never:
    """A schema that no payload matches."""

    def mismatch(self, payload: object) -> Mismatch | None:
        return Mismatch("/a", "is wrong")


def test_a_payload_that_does_not_match_is_refused_or_warned_of() -> None:
    rules = (AttributeRule("a", "/a", "number"),)
    with pytest.raises(InvalidInput, match=r"^payload/a: is wrong$") as refused:
        check_event(KnownType("t", rules, Never()), '{"a": 1}')
    assert (refused.value.code, refused.value.field) == ("payload_mismatch", "payload/a")
    warned = check_event(KnownType("t", rules, Never(), "warn"), '{"a": 1}')
    assert warned == Checked('{"a":1}', Mismatch("/a", "is wrong"))


def test_an_archived_type_takes_nothing() -> None:
    with pytest.raises(InvalidInput, match="t is archived") as refused:
        check_event(KnownType("t", archived=True), "{}")
    assert refused.value.code == "event_type_archived"


def test_an_unknown_type_is_answered_with_similar_ones() -> None:
    known = ["order.created", "order.paid", "invoice.sent"]
    assert "order.created" in str(unknown_type("order.craeted", known))
    assert "like it" not in str(unknown_type("x", known))
    many = [f"shop{n % 40}.order{n}.created" for n in range(2000)]
    assert "shop7.order7.created" in str(unknown_type("shop7.order7.craeted", many))
