"""A search of the docs for a term of the field finds the page about it first."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("operations/*.md")])
INDEXES = {DOCS / "README.md", DOCS / "operations" / "README.md"}
ROWS_OF_ONE_SCREEN = 40

TITLE, HEADING, PER_THOUSAND_WORDS = 40, 20, 1
"""Points for a term in the title, in another heading, and in the text for its share of the words."""


def score(page: Path, term: str) -> float:
    """Points of a page for a term, in any letter case, singular or plural."""
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text(encoding="utf-8")).lower()
    said = re.compile(rf"\b{re.escape(term)}(?:s|ies)?\b")
    title, *headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    share = 1000 * len(said.findall(text)) / len(text.split())
    points = TITLE * bool(said.search(title)) + HEADING * any(said.search(heading) for heading in headings)
    return points + PER_THOUSAND_WORDS * min(share, HEADING - 1)


def found(term: str) -> list[str]:
    """The pages with a term, the best first; indexes are not searched."""
    scored = {page: score(page, term) for page in PAGES if page not in INDEXES}
    best = sorted((page for page in scored if scored[page]), key=lambda page: -scored[page])
    return [page.relative_to(DOCS).as_posix() for page in best]


@pytest.mark.parametrize(
    ("term", "page"),
    [
        ("dead letter queue", "delivery.md"),
        ("at least once", "delivery.md"),
        ("retry", "delivery.md"),
        ("rate limit", "delivery.md"),
        ("idempotency", "sending.md"),
        ("idempotency key", "sending.md"),
        ("transactional outbox", "sending.md"),
        ("visibility timeout", "sqs-mode.md"),
        ("redrive queue", "sqs-mode.md"),
        ("circuit breaker", "delivery.md"),
        ("concurrency limit", "delivery.md"),
        ("pause", "delivery.md"),
        ("ordering key", "sending.md"),
        ("backfill", "operations/bulk-operations.md"),
        ("reverse proxy", "operations/server.md"),
        ("horizon", "operations/data-life.md"),
        ("metrics", "operations/observability.md"),
    ],
)
def test_the_first_page_found_is_the_one_about_the_term(term: str, page: str) -> None:
    assert found(term)[:1] == [page], found(term)[:4]


def test_the_index_names_every_page_on_one_screen() -> None:
    index = (DOCS / "README.md").read_text(encoding="utf-8")
    names = [page.relative_to(DOCS).as_posix() for page in PAGES if page not in INDEXES]
    assert len(names) > 20
    assert [name for name in names if f"({name})" not in index] == []
    assert len(index.splitlines()) <= ROWS_OF_ONE_SCREEN
