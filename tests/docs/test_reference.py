"""The readable reference is made from the code, complete, whole in itself, and explains every error there is."""

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from docs.generators.reference_page import API_PAGE, api_page, reference_page
from hooksaga.api.description.operations import GROUPS
from hooksaga.api.openapi import openapi_document
from hooksaga.api.problem_types import problem_type
from hooksaga.api.reference import PAGE_FILE, page, page_headers
from hooksaga.core.problems import BY_CODE, PROBLEMS
from tests.docs.raised_codes import constructed_in, raised

SCHEMAS = openapi_document()["components"]["schemas"]
LOADED = ("src", "srcset", "data", "action", "formaction", "poster", "style")
"""Attributes by which a page loads, sends or styles something; ours has none of them."""


class Seen(HTMLParser):
    """Elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.attributes: Counter[str] = Counter()
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        given = dict(attrs)
        self.ids.update(filter(None, [given.get("id")]))
        self.links += filter(None, [given.get("href")])

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen(page())


def test_every_code_that_can_be_answered_is_explained_and_no_other() -> None:
    assert {(problem.code, problem.status) for problem in PROBLEMS} == raised()


def test_a_code_has_one_row() -> None:
    assert len(BY_CODE) == len(PROBLEMS)
    assert [problem.status for problem in PROBLEMS] == sorted(problem.status for problem in PROBLEMS)


@pytest.mark.parametrize("source", ["NotFound(code, 'x')", "InvalidInput('a', 'x', status=status)"])
def test_a_code_that_is_not_written_out_is_found(source: str) -> None:
    with pytest.raises(AssertionError, match="here:1"):
        list(constructed_in(source, "here"))


def test_every_explanation_is_sentences_that_fit_into_a_table() -> None:
    texts = [text for problem in PROBLEMS for text in (problem.cause, problem.cure)]
    assert [text for text in texts if not re.fullmatch(r"[A-Z`][^|]*\.", text)] == []
    assert [text for text in texts if text.count("`") % 2] == []


def test_the_committed_page_is_the_one_that_is_made() -> None:
    assert PAGE_FILE.read_text(encoding="utf-8") == reference_page(), (
        "python -m docs.generators.reference_page"
    )


def test_the_table_of_errors_in_the_docs_is_the_one_that_is_made() -> None:
    text = API_PAGE.read_text(encoding="utf-8")
    assert text == api_page(text), "python -m docs.generators.reference_page"


def test_docs_without_a_place_for_the_table_are_refused() -> None:
    with pytest.raises(ValueError, match="no place for the errors"):
        api_page("# HTTP API\n")


def test_every_error_has_the_anchor_that_its_type_names(seen: Seen) -> None:
    anchors = [problem_type(problem.code).partition("#")[2] for problem in PROBLEMS]
    assert [anchor for anchor in anchors if seen.ids[anchor] != 1] == []


def test_every_operation_and_every_field_is_on_the_page(seen: Seen) -> None:
    text = " ".join(seen.words)
    for item in openapi_document()["paths"].values():
        for operation in item.values():
            assert seen.ids[operation["operationId"].replace("_", "-")] == 1
            assert operation["summary"] in text
    fields = {field for schema in SCHEMAS.values() for field in schema.get("properties", {})}
    assert fields - {"openapi", "paths"} <= set(seen.words), "but for those of openapi.json itself"


def test_every_link_within_the_page_leads_somewhere(seen: Seen) -> None:
    within = {link.removeprefix("#") for link in seen.links if link.startswith("#")}
    assert within - set(seen.ids) == set()
    assert {link for link in seen.links if not link.startswith("#")} == {"openapi.json"}
    assert set(seen.ids.values()) == {1}


def test_the_page_loads_and_runs_nothing(seen: Seen) -> None:
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(seen.tags)
    assert not set(LOADED) & set(seen.attributes)
    assert not [name for name in seen.attributes if name.startswith("on")]
    assert seen.tags["style"] == 1
    css = page().partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in css
    assert "@import" not in css


def test_a_browser_is_told_to_load_nothing_but_this_style() -> None:
    policy = page_headers()["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 1


@pytest.mark.parametrize("name", [name for name, schema in SCHEMAS.items() if "examples" in schema])
def test_an_example_is_of_its_schema(name: str) -> None:
    schema = {**SCHEMAS[name], "components": {"schemas": SCHEMAS}}
    [example] = SCHEMAS[name]["examples"]
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(example)


def test_every_object_of_an_answer_has_an_example() -> None:
    without = {name for name, schema in SCHEMAS.items() if "examples" not in schema}
    assert without == {"OpenApi", "ReferencePage", "ErrorCode", "BulkOperationOrCount"}


def test_every_field_has_words() -> None:
    fields = [
        (f"{name}.{field}", part)
        for name, schema in SCHEMAS.items()
        for field, part in schema.get("properties", {}).items()
    ]
    assert len(fields) > 200
    assert [name for name, part in fields if not _has_words(part)] == []


def _has_words(schema: dict[str, Any]) -> bool:
    """Its own, or those of a choice that it has."""
    return "description" in schema or any("description" in choice for choice in schema.get("anyOf", []))


def test_every_group_has_words() -> None:
    assert set(GROUPS) == {tag["name"] for tag in openapi_document()["tags"]}
