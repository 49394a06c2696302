"""The README in Traditional Chinese says what the English one says: the same parts, commands and links, in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-TW.md").read_text(encoding="utf-8")
OF_ONE_LANGUAGE = {"README.md", "README.zh-TW.md"}


def headings(page: str) -> list[str]:
    """Their levels: their words are translated."""
    return re.findall(r"^#+(?= )", without_code(page), re.MULTILINE)


def code(page: str) -> list[str]:
    """Every block of code, without its comments."""
    blocks = re.findall(r"^```\w*\n.*?^```$", page, re.DOTALL | re.MULTILINE)
    return [re.sub(r" +# .*", "", block) for block in blocks]


def without_code(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def first_cells(page: str) -> list[str]:
    """The commands of the table."""
    return re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)


def links(page: str) -> list[str]:
    return [link for link in re.findall(r"\]\(([^)]+)\)", page) if link not in OF_ONE_LANGUAGE]


def inline(page: str) -> set[str]:
    """Commands and names within sentences."""
    return set(re.findall(r"`([^`\n]+)`", without_code(page)))


@pytest.mark.parametrize("part", [headings, code, first_cells, links, inline], ids=lambda part: part.__name__)
def test_both_have_the_same(part: object) -> None:
    assert callable(part)
    assert part(ENGLISH), "or nothing would be compared"
    assert part(CHINESE) == part(ENGLISH)


def test_each_leads_to_the_other() -> None:
    assert "(README.zh-TW.md)" in ENGLISH
    assert "(README.md)" in CHINESE
