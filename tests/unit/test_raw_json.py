"""The members of an object as their text, whatever they hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.local.raw_json import indented, raw_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]), st.booleans())
def test_the_members_are_those_of_the_object(
    content: dict[str, object], indent: int | None, escaped: bool
) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=escaped)
    members = raw_members(text)
    assert list(members) == list(content)
    assert {name: json.loads(member) for name, member in members.items()} == content
    assert all(member in text for member in members.values())


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", {}),
        (" { } ", {}),
        ('{"a": 1.10 , "b":[1,{"c":2}]}', {"a": "1.10", "b": '[1,{"c":2}]'}),
        ('{"a": 1, "a": 2}', {"a": "2"}),
        (r'{"a\"b": "}\\"}', {'a"b': r'"}\\"'}),
    ],
)
def test_a_member_is_kept_to_the_character(text: str, members: dict[str, str]) -> None:
    assert raw_members(text) == members


@pytest.mark.parametrize(
    "text", ["", "[]", "3", '"{}"', "<p>{}</p>", "{", '{"a":1', '{"a":1}}', "{a:1}", "null"]
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        raw_members(text)


def test_depth_and_length_have_no_bounds() -> None:
    deep, long = "[" * 100_000 + "]" * 100_000, "9" * 1_000_000
    assert raw_members(f'{{"deep":{deep},"long":{long}}}') == {"deep": deep, "long": long}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1.10,"a":1e999}', '{\n  "a": 1.10,\n  "a": 1e999\n}'),
        ("[" * 3000 + "]" * 3000, "[" * 3000 + "]" * 3000),
        ("no JSON", "no JSON"),
    ],
    ids=["indented", "too deep", "no JSON"],
)
def test_what_cannot_be_indented_is_shown_as_it_is(text: str, shown: str) -> None:
    assert indented(text) == shown
