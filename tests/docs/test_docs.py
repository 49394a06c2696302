"""Claims of the docs about the code are true."""

import re
import tomllib
from pathlib import Path

import pytest
from starlette.routing import Route

from docs.generators.openapi_file import OPENAPI_FILE, openapi_text
from docs.generators.state_diagram import STATES_PAGE, states_page
from hooksaga.api.app import ALL_ROUTES
from hooksaga.api.openapi import openapi_document
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.product import VERSION
from hooksaga.runtime.settings import PREFIX, Settings

ROOT = Path(__file__).resolve().parents[2]


def test_the_state_diagram_is_the_table() -> None:
    assert STATES_PAGE.read_text(encoding="utf-8") == states_page()


def test_the_committed_description_of_the_api_is_the_served_one() -> None:
    assert OPENAPI_FILE.read_text(encoding="utf-8") == openapi_text()


def test_every_route_is_described_and_every_described_route_exists() -> None:
    described = {
        (method.upper(), path) for path, item in openapi_document()["paths"].items() for method in item
    }
    served = {
        (method, route.path_format)
        for route in ALL_ROUTES
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert described == served


def test_the_version_is_the_packages_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION


def test_every_error_word_of_an_attempt_is_documented() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert [word for word in ErrorCode if f"`{word}`" not in page] == []


def test_every_setting_is_documented_with_its_name() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [name for name in Settings.model_fields if f"`{PREFIX}{name.upper()}`" not in page] == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=str)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
