"""The JSON Schema of filters, which is in the API's description, against what the API takes and refuses."""

import json
import runpy
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hooksaga.core import described_filters
from tests.filter_cases import BAD, BEYOND_SCHEMAS, CASES


@pytest.fixture
def made() -> dict[str, Any]:
    """The module's names, made anew: mutation tests change the functions that make them after the import."""
    return runpy.run_path(described_filters.__file__, run_name=described_filters.__name__)


def test_the_schema_allows_what_is_taken(made: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(made["FILTER_SCHEMA"])
    schema = Draft202012Validator(made["FILTER_SCHEMA"])
    given = [json.loads(json.dumps(case.filter)) for case in CASES]
    assert [one for one in given if not schema.is_valid(one)] == []


def test_the_schema_forbids_what_is_refused(made: dict[str, Any]) -> None:
    schema = Draft202012Validator(made["FILTER_SCHEMA"])
    refused = [given for given, place in BAD if (given, place) not in BEYOND_SCHEMAS]
    assert [one for one in refused if schema.is_valid(one)] == []


def test_an_operator_has_one_kind_of_operand(made: dict[str, Any]) -> None:
    schema = Draft202012Validator(made["FILTER_PATTERN_SCHEMA"])
    wrong: list[dict[str, Any]] = [
        {"exists": None},
        {"numeric": {}},
        {"numeric": [">=", 1, "<=", 2, 3]},
        {"numeric": [">=", 1, "<=", "2"]},
        {"anything-but": {}},
        {"anything-but": {"prefix": {}}},
    ]
    assert [one for one in wrong if schema.is_valid(one)] == []
