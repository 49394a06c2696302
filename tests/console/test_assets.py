"""Assets of a page are hooksaga's or listed with their version, and are cacheable."""

import hashlib
import json

import pytest

from hooksaga.console.assets import FOLDER, TYPES, served
from tests.api.running_system import RunningSystem
from tests.console.pages import Pages

OURS = {"base.css", "console.css", "console.js", "icon.svg", "portal.css", "portal.js", "vendored.json"}
VENDORED = json.loads((FOLDER / "vendored.json").read_text("utf-8"))


def test_everything_else_is_named_with_its_version_and_licence() -> None:
    assert {one["file"] for one in VENDORED} == {path.name for path in FOLDER.iterdir()} - OURS
    for one in VENDORED:
        assert one["name"]
        assert one["version"]
        assert one["licence"]
        assert hashlib.sha256((FOLDER / one["file"]).read_bytes()).hexdigest() == one["sha256"]


@pytest.mark.parametrize("name", served())
def test_an_asset_is_kept_for_good_under_the_name_of_its_content(running: RunningSystem, name: str) -> None:
    answer = Pages(running.port).get(f"/console/assets/{name}")
    assert answer.status == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"] == TYPES["." + name.rpartition(".")[2]]
    assert answer.body == served()[name].read_text("utf-8")


@pytest.mark.parametrize("name", ["console.css", "vendored.json", "..", "nothing"])
def test_nothing_else_is_served(running: RunningSystem, name: str) -> None:
    assert Pages(running.port).get(f"/console/assets/{name}").status == 404
