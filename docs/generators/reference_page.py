"""Writes the readable reference and the table of errors in docs/api.md: `python -m docs.generators.reference_page`.

Both are committed: the page is served as it is, so no function carries what it takes to make one.
"""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from docs.generators.reference import schema_words, views
from hooksaga.api.openapi import openapi_document
from hooksaga.api.problem_types import ANCHOR
from hooksaga.api.reference import PAGE_FILE
from hooksaga.core.problems import PROBLEMS

API_PAGE = Path(__file__).resolve().parents[1] / "api.md"
TEMPLATES = Path(__file__).with_name("reference")
BEGIN, END = "<!-- errors: python -m docs.generators.reference_page -->", "<!-- end of errors -->"


def reference_page() -> str:
    """The page as HTML, complete in itself."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["prose"] = schema_words.prose
    environment.filters["json"] = schema_words.shown_json
    css = (TEMPLATES / "reference.css").read_text(encoding="utf-8")
    page = environment.get_template("reference.html.j2").render(css=Markup(css), **_content())  # noqa: S704 - our file
    return re.sub(r"[ \t]+\n", "\n", page)


def _content() -> dict[str, Any]:
    document = openapi_document()
    return {
        "info": document["info"],
        "groups": views.groups_of(document),
        "objects": views.objects_of(document),
        "problems": views.problems_by_status(PROBLEMS),
        "anchor": ANCHOR,
    }


def api_page(page: str) -> str:
    """The Markdown page with its table of errors made anew. Raises ValueError when its place is not marked."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"docs/api.md has no place for the errors between {BEGIN} and {END}")
    rows = [f"| `{one.code}` | {one.status} | {one.cause} | {one.cure} |" for one in PROBLEMS]
    table = "\n".join(["| code | status | cause | cure |", "|---|---|---|---|", *rows])
    return f"{before}{begin}\n\n{table}\n\n{end}{after}"


if __name__ == "__main__":
    PAGE_FILE.write_text(reference_page(), encoding="utf-8", newline="\n")
    API_PAGE.write_text(api_page(API_PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
