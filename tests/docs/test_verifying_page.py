"""docs/verifying.md contains the programs of the portal; `python -m docs.generators.verifying_page` writes them."""

from docs.generators.verifying_page import PAGE, filled


def test_the_page_has_the_receivers_of_the_portal() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page) == page
    assert page.count("```") == 14
