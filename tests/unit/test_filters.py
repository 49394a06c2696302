"""Filters in Python: what they match, and which part an error names."""

import json
from decimal import Decimal
from typing import Any

import pytest

from hooksaga.core.errors import InvalidPart
from hooksaga.core.event_attributes import values_of
from hooksaga.core.filters import OR, FailedCondition, check_filter, failed_condition
from tests.filter_cases import BAD, CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(json.dumps(case))[:80])
def test_a_filter_matches_what_aws_says(case: Case) -> None:
    failed = failed_condition(case.filter, values_of(json.dumps(case.attributes)))
    assert (failed is None) is case.matches


@pytest.mark.parametrize(("given", "place"), BAD, ids=lambda value: ascii(value)[:60])
def test_an_error_names_the_place(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPart) as refused:
        check_filter(given)
    assert refused.value.place == place


def test_the_limits_themselves_are_allowed() -> None:
    check_filter({f"a{number}": [1] for number in range(10)})
    check_filter({"a": list(range(100))})
    check_filter({OR: [{"a": ["x" * 200]}] * 10})


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
