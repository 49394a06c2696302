"""Event types of a subscription: which entries are allowed, and which types they match."""

import pytest

from hooksaga.core.event_patterns import (
    check_event_types,
    matching_patterns,
    patterns_of_type,
    sample_type,
    shown_event_types,
)


@pytest.mark.parametrize(
    ("event_type", "patterns"),
    [
        ("order", ["order", "*"]),
        ("order.paid", ["order.paid", "order.*", "*"]),
        ("a.b.c", ["a.b.c", "a.*", "a.b.*", "*"]),
        ("a..b", ["a..b", "a.*", "a..*", "*"]),
        ("order/paid:late", ["order/paid:late", "*"]),
        (
            "hooksaga.subscription.failing",
            ["hooksaga.subscription.failing", "hooksaga.*", "hooksaga.subscription.*"],
        ),
        ("hooksaga", ["hooksaga", "*"]),
    ],
)
def test_the_patterns_of_a_type(event_type: str, patterns: list[str]) -> None:
    assert patterns_of_type(event_type) == patterns


@pytest.mark.parametrize(
    ("event_types", "event_type", "matching"),
    [
        (["order.created"], "order.created", ["order.created"]),
        (["order.created"], "order.Created", []),
        (["order.*"], "order", []),
        (["order.*"], "orders.paid", []),
        (["*", "x", "order.*", "order.paid"], "order.paid", ["*", "order.*", "order.paid"]),
        (["*"], "hooksaga.delivery.dead_lettered", []),
        (["*", "hooksaga.*"], "hooksaga.delivery.dead_lettered", ["hooksaga.*"]),
    ],
)
def test_those_that_match(event_types: list[str], event_type: str, matching: list[str]) -> None:
    assert matching_patterns(event_types, event_type) == matching


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [""],
        ["a b"],
        ["a*"],
        ["*.a"],
        ["a.*.b"],
        [".*"],
        ["**"],
        ["a.*\n"],
        ["x" * 101],
        ["x" * 99 + ".*"],
        [f"t{n}" for n in range(101)],
        ["a"] * 101,
    ],
)
def test_what_is_refused(wrong: list[str]) -> None:
    with pytest.raises(ValueError, match="must be 1 to 100 event types"):
        check_event_types(wrong)


@pytest.mark.parametrize(
    ("wrong", "end"),
    [
        (["a", "b c"], ", not 'b c'"),
        (["x" * 101], f", not '{'x' * 100}'"),
        ([], ""),
        (["a"] * 101, ""),
    ],
    ids=["letter", "long", "none", "many"],
)
def test_a_refusal_tells_the_rule_and_the_first_that_breaks_it(wrong: list[str], end: str) -> None:
    with pytest.raises(ValueError, match="event types") as refused:
        check_event_types(wrong)
    assert str(refused.value) == (
        "must be 1 to 100 event types, each 1 to 100 characters from A-Z a-z 0-9 _ . : / -, "
        f"or a prefix such as `invoice.*`, or `*` for all{end}"
    )


def test_what_is_allowed() -> None:
    longest = ["x" * 100, "x" * 98 + ".*", "*", "a..*"]
    assert check_event_types(longest) == longest
    assert check_event_types(["a", "b.*", "a"]) == ["a", "b.*"]
    for count in (1, 100):
        types = [f"t{n}" for n in range(count)]
        assert check_event_types(types) == types


@pytest.mark.parametrize(
    ("event_types", "sample"), [(["a.b", "*"], "a.b"), (["a.*"], "a.test"), (["*", "a"], "test")]
)
def test_a_sample_matches(event_types: list[str], sample: str) -> None:
    assert sample_type(event_types) == sample
    assert matching_patterns(event_types[:1], sample) == event_types[:1]


def test_the_sample_of_the_longest_prefix_is_a_type() -> None:
    prefix = "x" * 98 + ".*"
    assert matching_patterns([prefix], sample_type([prefix])) == [prefix]
    assert len(sample_type([prefix])) == 100


def test_many_are_shown_in_brief() -> None:
    assert shown_event_types(["a"]) == "a"
    assert shown_event_types(["a", "b", "c"]) == "a, b, c"
    assert shown_event_types(["a", "b", "c", "d"]) == "a, b, c +1"
    assert shown_event_types(["a", "b", "c", "d", "e"]) == "a, b, c +2"
    assert shown_event_types(["a", "b"], 1) == "a +1"
