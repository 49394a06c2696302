"""Headers of one's own: what may be added, and that nothing of the product's can be replaced."""

import string

import pytest

from hooksaga.core.custom_headers import MAX_HEADERS, RESERVED, check_custom_headers, check_header_changes

TOKEN_SIGNS = "!#$%&'*+.^_`|~-"


def test_names_are_lowered_and_values_are_kept() -> None:
    assert check_custom_headers({"X-Api-KEY": "A b  C~!"}) == {"x-api-key": "A b  C~!"}


def test_every_character_of_a_token_may_stand_in_a_name() -> None:
    name = TOKEN_SIGNS + string.digits + string.ascii_letters
    assert list(check_custom_headers({name: "1"})) == [name.lower()]


@pytest.mark.parametrize("count", [0, 1, MAX_HEADERS])
def test_so_many_headers_are_taken(count: int) -> None:
    headers = {f"x-{number}": "1" for number in range(count)}
    assert check_custom_headers(headers) == headers


def test_a_name_has_one_hundred_characters_and_a_value_one_thousand_and_twenty_four() -> None:
    longest = {"x" * 100: "v" * 1024}
    assert check_custom_headers(longest) == longest
    for headers in ({"x" * 101: "v"}, {"x": "v" * 1025}):
        with pytest.raises(ValueError, match=r"must be 1 to 1024|is not a header name"):
            check_custom_headers(headers)


@pytest.mark.parametrize(
    "name",
    ["", "x y", "x:y", "x\r\n", "\u00e9", "x\0", "(x)", "x,y", "x/y", "x=y", "[x]", "{x}", "x@y", '"x"'],
)
def test_what_is_no_token_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="is not a header name"):
        check_custom_headers({name: "1"})


@pytest.mark.parametrize(
    "value", ["", " ", " a", "a ", "\ta", "a\tb", "a\r\nb: c", "caf\u00e9", "\U0001f600", "a\x7f", "a\0"]
)
def test_a_value_arrives_as_it_was_sent_or_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^the value of x must be"):
        check_custom_headers({"X": value})


@pytest.mark.parametrize("value", ["a", "!", "~", "a b", "! ~"])
def test_a_value_may_hold_any_printable_character(value: str) -> None:
    assert check_custom_headers({"x": value}) == {"x": value}


TAKEN_BY_US = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
]


def test_the_reserved_names_are_these() -> None:
    assert sorted(RESERVED) == TAKEN_BY_US


@pytest.mark.parametrize(
    "name",
    [
        *TAKEN_BY_US,
        "webhook-id",
        "webhook-signature",
        "webhook-",
        "hooksaga-attempt",
        "hooksaga-other",
        "ce-id",
    ],
)
def test_no_header_of_ours_can_be_replaced_in_any_letter_case(name: str) -> None:
    for spelling in (name, name.upper(), name.title()):
        with pytest.raises(ValueError, match=f"^{name} is set by hooksaga"):
            check_custom_headers({spelling: "1"})


@pytest.mark.parametrize("name", ["authorization", "webhook", "x-webhook-id", "hooksaga", "content-language"])
def test_other_names_are_free(name: str) -> None:
    assert check_custom_headers({name: "1"}) == {name: "1"}


def test_no_name_comes_twice_on_the_wire() -> None:
    with pytest.raises(ValueError, match=r"^a header name occurs twice in different case$"):
        check_custom_headers({"X-A": "1", "x-a": "1"})


def test_a_change_sets_removes_or_keeps_by_lower_case_names() -> None:
    assert check_header_changes({"X-A": "1", "X-B": None, "x-c": "***"}) == {
        "x-a": "1",
        "x-b": None,
        "x-c": "***",
    }


@pytest.mark.parametrize("value", ["", " a", "caf\u00e9", "v" * 1025])
def test_a_changed_value_has_the_rules_of_a_new_one(value: str) -> None:
    with pytest.raises(ValueError, match=r"^the value of x must be"):
        check_header_changes({"X": value})


@pytest.mark.parametrize("change", ["1", None, "***"])
def test_no_header_of_ours_can_be_changed(change: str | None) -> None:
    with pytest.raises(ValueError, match=r"^host is set by hooksaga"):
        check_header_changes({"Host": change})
    with pytest.raises(ValueError, match=r"^a header name occurs twice in different case$"):
        check_header_changes({"X-A": "1", "x-a": change})
