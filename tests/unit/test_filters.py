"""Filters in Python: what they match, and which part an error names."""

import json
from decimal import Decimal
from typing import Any

import pytest

from hooksaga.core.errors import InvalidPart
from hooksaga.core.event_attributes import values_of
from hooksaga.core.filters import (
    OR,
    FailedCondition,
    check_filter,
    compile_filter,
    failed_condition,
    value_text,
)
from tests.case_names import case_name
from tests.filter_cases import BAD, CASES, Case


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_filter_matches_what_aws_says(case: Case) -> None:
    failed = failed_condition(case.filter, values_of(json.dumps(case.attributes)))
    assert (failed is None) is case.matches


@pytest.mark.parametrize(("given", "place"), BAD, ids=case_name)
def test_an_error_names_the_place(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPart) as refused:
        check_filter(given)
    assert refused.value.place == place


def of_length(characters: int) -> dict[str, Any]:
    """A filter with so many characters of JSON, some of which have several bytes."""
    wanted = {"a": ["\u00e9" * 200] * 20}
    return {**wanted, "b": ["x" * (characters - len(compact(wanted)) - len(',"b":[""]'))]}


def compact(given: dict[str, Any]) -> str:
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"))


AT_THE_LIMITS: list[dict[str, Any]] = [
    {f"a{number}": [1] for number in range(10)},
    {"a": list(range(100))},
    {"a": [{"anything-but": list(range(50))}, {"prefix": "x"}], "b": list(range(49))},
    {"a": [{"numeric": [">", 0, "<=", 9]}], "b": list(range(96))},
    {OR: [{"a": ["x" * 200]}] * 10},
    {OR: [{"a": list(range(10))}] * 10},
    {"x" * 64: [10**30, -(10**30), 1e30, -1e30]},
    {"a": [" ~\x80\ud7ff\ue000"]},
    {"a": [{"numeric": [">", 0, "<", 1]}, {"numeric": [">=", 0, "<=", 1]}]},
    of_length(4096),
]
PAST_THE_LIMITS: list[tuple[dict[str, Any], str]] = [
    ({"a": [{"anything-but": list(range(50))}, {"prefix": "x"}], "b": list(range(50))}, ""),
    ({"a": [{"numeric": [">", 0, "<=", 9]}], "b": list(range(97))}, ""),
    ({OR: [{"a": [1]}] * 11}, ".$or"),
    ({OR: [{"a": list(range(10))}] * 9 + [{"a": list(range(11))}]}, ""),
    ({"x" * 65: [1]}, f".{'x' * 65}"),
    ({"x" * 201: [1]}, f".{'x' * 200}"),
    ({"a": [{"y" * 201: 1}]}, f".a[0].{'y' * 200}"),
    ({"a": [10**30 + 1]}, ".a[0]"),
    ({"a": [-(10**30) - 1]}, ".a[0]"),
    ({"a": [1.001e30]}, ".a[0]"),
    *(({"a": [{"suffix": f"x{character}"}]}, ".a[0].suffix") for character in "\0\x1f\x7f\ud800\udfff"),
    ({"a": [{"numeric": [">", 0, "=", 1]}]}, ".a[0].numeric"),
    ({"a": [{"numeric": [">", 0, "<", 1, "<", 2]}]}, ".a[0].numeric"),
    ({"a": [{"numeric": [">", 0, "!", 1]}]}, ".a[0].numeric[2]"),
    ({"a": [{"numeric": [">", 0, "<", "1"]}]}, ".a[0].numeric[3]"),
    (of_length(4097), ""),
]


@pytest.mark.parametrize("given", AT_THE_LIMITS, ids=case_name)
def test_the_limits_themselves_are_allowed(given: dict[str, Any]) -> None:
    assert check_filter(given) == given


@pytest.mark.parametrize(("given", "place"), PAST_THE_LIMITS, ids=case_name)
def test_one_past_a_limit_is_refused(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPart) as refused:
        check_filter(given)
    assert refused.value.place == place


OPERATORS = "anything-but, equals-ignore-case, exists, numeric, prefix, suffix"
TEXT_RULE = "must be a string of at most 200 characters without control characters"
LIST_RULE = 'must be a list of values and patterns, such as ["a", {"prefix": "b"}]'
NUMBER_RULE = "must be a number from -10^30 to 10^30"
NUMERIC_RULE = 'must be one comparison, such as [">", 0], or two, such as [">", 0, "<=", 150]'
RULES: list[tuple[dict[str, Any], str]] = [
    ({}, "must have 1 to 10 names"),
    ({"a b": [1]}, "an attribute name must have 1 to 64 characters from A-Z a-z 0-9 _ . -"),
    ({"a": "x"}, LIST_RULE),
    ({"a": []}, LIST_RULE),
    ({"a": [None]}, 'must not be null; {"exists": false} matches an absent attribute'),
    ({"a": [["x"]]}, "must be a string, a number or a boolean"),
    ({"a": [{"anything-but": [{"prefix": "x"}]}]}, "must be a string, a number or a boolean"),
    ({"a": [1e31]}, NUMBER_RULE),
    ({"a": ["x" * 201]}, TEXT_RULE),
    ({"a": [{}]}, f"must have one operator: {OPERATORS}"),
    ({"a": [{"cidr": "10.0.0.0/8"}]}, f"is not supported; the operators are {OPERATORS}"),
    ({"a": [{"prefix": 1}]}, TEXT_RULE),
    ({"a": [{"prefix": ""}]}, "must not be empty"),
    ({"a": [{"exists": 1}]}, "must be true or false"),
    ({"a": [{"numeric": 5}]}, NUMERIC_RULE),
    ({"a": [{"numeric": [">", 1, "<"]}]}, NUMERIC_RULE),
    ({"a": [{"numeric": ["!=", 5]}]}, "must be one of =, <, <=, >, >="),
    ({"a": [{"numeric": [">", "5"]}]}, NUMBER_RULE),
    (
        {"a": [{"numeric": ["<", 5, ">", 1]}]},
        "must have > or >= first and < or <= second, if it has two comparisons",
    ),
    ({"a": [{"anything-but": []}]}, "must not be empty"),
    ({"a": [{"anything-but": {"suffix": []}}]}, "must not be empty"),
    (
        {"a": [{"anything-but": {"exists": True}}]},
        "must be a value, a list of values, or one of prefix, suffix, equals-ignore-case",
    ),
    ({OR: [{"a": [1]}]}, "must be a list of 2 to 10 objects"),
    ({OR: [{"a": [1]}, "b"]}, "must be an object of attribute names"),
    ({OR: [{"a": [1]}, {OR: []}]}, "must not be inside another $or"),
    ({"a": list(range(101))}, "must have at most 100 patterns and values"),
    (of_length(4097), "must have at most 4,096 characters of JSON"),
]


@pytest.mark.parametrize(("given", "rule"), RULES, ids=case_name)
def test_an_error_tells_the_rule(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidPart) as refused:
        check_filter(given)
    assert str(refused.value) == rule


PREDICATES: list[tuple[dict[str, Any], str]] = [
    (
        {"a": ["x", 1, 1.5, True, {"exists": True}]},
        '(($."a" == "x" || $."a" == 1 || $."a" == 1.5 || $."a" == true || exists($."a")))',
    ),
    (
        {"a": [{"exists": False}], "b.c": [{"prefix": 'q"x'}]},
        '((!exists($."a")) && ($."b.c" starts with "q\\"x"))',
    ),
    ({"a": [{"suffix": "ab"}]}, '(($."~a" starts with "ba"))'),
    ({"a": [{"equals-ignore-case": "\u00c4B"}]}, '(($."^a" == "\\u00c4b"))'),
    (
        {"a": [{"numeric": ["=", 1]}, {"numeric": [">", 0, "<=", 5.5]}]},
        '((($."a" == 1) || ($."a" > 0 && $."a" <= 5.5)))',
    ),
    (
        {"a": [{"anything-but": ["x", 1]}]},
        '(((exists($."a") && !exists($ ? (@."a" == "x" || @."a" == 1)))))',
    ),
    (
        {"a": [{"anything-but": {"suffix": ["xy", "z"]}}]},
        '(((exists($."a") && !exists($ ? (@."~a" starts with "yx" || @."~a" starts with "z")))))',
    ),
    (
        {"a": [{"anything-but": {"equals-ignore-case": "X"}}]},
        '(((exists($."a") && !exists($ ? (@."^a" == "x")))))',
    ),
    (
        {"a": [1], OR: [{"b": [2], "c": [3]}, {"d": [4]}]},
        '(($."a" == 1) && ((($."b" == 2) && ($."c" == 3)) || (($."d" == 4))))',
    ),
]


@pytest.mark.parametrize(("given", "predicate"), PREDICATES, ids=case_name)
def test_the_predicate_of_a_filter_is_stored_and_stays_the_same(
    given: dict[str, Any], predicate: str
) -> None:
    """The tests of the database say what these mean."""
    assert compile_filter(given) == predicate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", '"x"'),
        ('\u8a02"', '"\u8a02\\""'),
        (True, "true"),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+30"), "1E+30"),
    ],
    ids=case_name,
)
def test_a_value_is_told_as_json(value: str | bool | Decimal, text: str) -> None:
    assert value_text(value) == text


def test_a_filter_is_kept_as_it_was_written() -> None:
    given = {"b": [1.50, {"exists": True}], "a": ["x"]}
    assert json.dumps(check_filter(given)) == json.dumps(given)


def test_the_first_condition_that_fails_is_told_with_the_value() -> None:
    wanted: dict[str, Any] = {"a": [1], "b": [{"prefix": "x"}], "c": ["y"]}
    attributes = values_of('{"a": 1, "b": "z", "n": 1.10}')
    assert failed_condition(wanted, attributes) == FailedCondition("b", [{"prefix": "x"}], "z")
    assert failed_condition({"c": ["y"]}, attributes) == FailedCondition("c", ["y"], None)
    assert failed_condition({"n": [2]}, attributes) == FailedCondition("n", [2], Decimal("1.10"))
    alternatives = [{"a": [2]}, {"b": ["x"]}]
    assert failed_condition({OR: alternatives}, attributes) == FailedCondition(OR, alternatives, None)
