"""A filter means the same in PostgreSQL, where routing compares it, and in Python, which explains it."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooksaga.core.event_attributes import values_of
from hooksaga.core.filters import compile_filter, failed_condition
from tests.database.seed import Seed
from tests.filter_cases import CASES


async def evaluated(seed: Seed, wanted: dict[str, Any], attributes: str) -> bool:
    return await seed.value(
        "SELECT filter_matches(%s::jsonpath, compared_attributes(%s::jsonb))",
        [compile_filter(wanted), attributes],
    )


async def test_the_database_matches_what_aws_says(seed: Seed) -> None:
    wrong = [
        case
        for case in CASES
        if await evaluated(seed, case.filter, json.dumps(case.attributes)) is not case.matches
    ]
    assert wrong == []


TEXTS = st.text('aAbB.*$"\\\\é😀\u2028 1', max_size=4)
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.1, 1.5, -2.25, 1e30, 5e-324, 2**60, 10**20 + 1])
VALUES = TEXTS | NUMBERS | st.booleans()
NAMES = st.sampled_from(["a", "b", "A", "a.b", "-"])
AFFIXES = TEXTS.filter(bool)


def one_or_many(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3)


def operator_of(name: str, operand: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return operand.map(lambda value: {name: value})


RANGES = st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), NUMBERS).map(list) | st.tuples(
    st.sampled_from([">", ">="]), NUMBERS, st.sampled_from(["<", "<="]), NUMBERS
).map(list)
BUT = (
    one_or_many(VALUES)
    | operator_of("prefix", one_or_many(AFFIXES))
    | operator_of("suffix", one_or_many(AFFIXES))
    | operator_of("equals-ignore-case", one_or_many(TEXTS))
)
PATTERNS = (
    VALUES
    | operator_of("prefix", AFFIXES)
    | operator_of("suffix", AFFIXES)
    | operator_of("equals-ignore-case", TEXTS)
    | operator_of("exists", st.booleans())
    | operator_of("numeric", RANGES)
    | operator_of("anything-but", BUT)
)
ALTERNATIVES = st.dictionaries(NAMES, st.lists(PATTERNS, min_size=1, max_size=3), min_size=1, max_size=3)
FILTERS = ALTERNATIVES | st.tuples(ALTERNATIVES, st.lists(ALTERNATIVES, min_size=2, max_size=3)).map(
    lambda both: {**both[0], "$or": both[1]}
)
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=4)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS, attributes=ATTRIBUTES)
async def test_the_database_and_the_program_have_one_meaning(
    seed: Seed, wanted: dict[str, Any], attributes: dict[str, Any]
) -> None:
    text = json.dumps(attributes)
    expected = failed_condition(wanted, values_of(text)) is None
    assert await evaluated(seed, wanted, text) is expected


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=FILTERS, others=st.recursive(VALUES | st.none(), lambda inner: st.lists(inner, max_size=2)))
async def test_a_filter_is_never_an_error(seed: Seed, wanted: dict[str, Any], others: Any) -> None:
    """Not even on rows that were written before a rule, or with all rules off."""
    for attributes in (others, {"a": others, "b": {"c": others}}):
        assert await evaluated(seed, wanted, json.dumps(attributes)) in (True, False)
