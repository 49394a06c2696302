"""Commands, options, actions, functions and headings in the operator pages exist."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from starlette.routing import Match
from typer.main import get_command

from functions.admin.handler import ROUTES
from hooksaga.aws import admin_actions
from hooksaga.aws.direct_requests import REQUESTS
from hooksaga.aws.secret_actions import ResealSecrets
from hooksaga.cli.app import app
from hooksaga_cdk.components.functions import DESIGNS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "operations").glob("*.md"))
ALL_PAGES = [*PAGES, ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"^( *)```(?:sh|console)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(hooksaga [^`]+)`")
_INVOKED = re.compile(r"--function-name hooksaga-\w+-(\w+)\s.*?--payload '(\{.*?\})'", re.DOTALL)
_ANY = ("…", "COMMAND")
_OPERATORS = ("&&", "||", "|", ";", "&", ">", "<")


def words_of(statement: str) -> list[str]:
    """Split a command line as a shell does. Raises ValueError for an unterminated quotation."""
    lexer = shlex.shlex(statement.replace("$(", "("), posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split = True
    return list(lexer)


def statements(block: str) -> Iterator[list[str]]:
    """The words of each line; lines that a quotation spans are one."""
    begun = ""
    for line in block.splitlines():
        begun = f"{begun}\n{line}" if begun else line
        try:
            words = words_of(begun)
        except ValueError:
            continue
        begun = ""
        yield words
    assert not begun, f"a quotation never ends: {begun}"


def commands_in(text: str) -> Iterator[list[str]]:
    """Each `hooksaga …` of a page as the words behind it."""
    blocks = [block.replace("\\\n", " ") for _, block in _BLOCK.findall(text)]
    lines = [line for block in blocks for line in statements(block)]
    for line in [*lines, *(words_of(inline) for inline in _INLINE.findall(text))]:
        words = [Path(word).name if word.endswith("/hooksaga") else word for word in line]
        for start in (place for place, word in enumerate(words) if word == "hooksaga"):
            end = next((n for n in range(start, len(words)) if words[n] in _OPERATORS), len(words))
            yield words[start + 1 : end]


def fault_of(words: list[str]) -> str | None:
    """Return the unknown command or option, or None. Arguments are not checked."""
    command: Any = get_command(app)
    names = iter(words)
    path = "hooksaga"
    while hasattr(command, "commands"):
        name = next(names, None)
        if name in (None, "--help", *(word for option in command.params for word in option.opts), *_ANY):
            return None
        path = f"{path} {name.rstrip(',')}"
        if (name := name.rstrip(",")) not in command.commands:
            return path
        command = command.commands[name]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help"}
    unknown = [word for word in names if word.startswith("--") and word.split("=")[0] not in known]
    return f"{path} {unknown[0]}" if unknown else None


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    faults = [fault for words in commands_in(page.read_text(encoding="utf-8")) if (fault := fault_of(words))]
    assert faults == []


def test_enough_is_found() -> None:
    found = [words for page in PAGES for words in commands_in(page.read_text(encoding="utf-8"))]
    assert len(found) > 40
    assert ["prune", "--older-than", "30d", "--stack", "hooksaga-ENV"] in found
    assert ["audit"] in found


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("hooksaga prun --older-than 30d", "hooksaga prun"),
        ("hooksaga prune --older-then 30d", "hooksaga prune --older-then"),
        ("FOO=1 .venv/bin/hooksaga keys make", "hooksaga keys make"),
        ("hooksaga keys list && hooksaga audit --stak x", "hooksaga audit --stak"),
        ("hooksaga doctor --probe https://a.example.com/ | cat --nothing", None),
        ("hooksaga --verbose audit", "hooksaga --verbose"),
    ],
)
def test_what_does_not_exist_is_found(line: str, fault: str | None) -> None:
    page = f"```sh\n{line}\n```\n"
    assert [found for words in commands_in(page) if (found := fault_of(words))] == ([fault] if fault else [])


def problem_of(function: str, action: dict[str, Any]) -> str | None:
    models: dict[str, TypeAdapter[Any]] = {
        "admin": REQUESTS if "method" in action else admin_actions._ACTIONS,
        "subscriptions": TypeAdapter(ResealSecrets),
    }
    try:
        models[function].validate_json(json.dumps(action))
    except ValidationError as error:
        return str(error)
    return None if "method" not in action or _has_route(action) else f"no route {action['path']}"


def _has_route(request: dict[str, Any]) -> bool:
    scope = {"type": "http", "method": request["method"], "path": request["path"]}
    return any(route.matches(scope)[0] is Match.FULL for route in ROUTES)


def test_every_action_of_a_page_exists() -> None:
    invoked = [
        (page.name, *found)
        for page in [*PAGES, ROOT / "docs" / "api.md"]
        for found in _INVOKED.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(invoked) >= 3
    for page, function, payload in invoked:
        assert problem_of(function, json.loads(payload)) is None, page


def test_wrong_actions_are_told() -> None:
    assert problem_of("admin", {"method": "GET", "path": "/v1/dead-letters"}) is None
    assert problem_of("admin", {"method": "GET", "path": "/v1/deadletters"}) is not None
    assert problem_of("admin", {"method": "DELETE", "path": "/v1/dead-letters"}) is not None
    assert problem_of("admin", {"action": "prune", "kind": "tables"}) is not None
    assert problem_of("admin", {"action": "prune_all", "older_than": "30d"}) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_function_of_a_page_exists(page: Path) -> None:
    names = re.findall(r"--function-name hooksaga-\w+-(\w+)", page.read_text(encoding="utf-8"))
    assert set(names) <= {*DESIGNS, "migrate", "FUNCTION", "NAME"}


def test_every_heading_that_a_link_names_is_there() -> None:
    link = re.compile(r"\]\(([^)#\s:]*)#([^)]+)\)")
    links = [(page, *found) for page in PAGES for found in link.findall(page.read_text(encoding="utf-8"))]
    assert len(links) > 2
    for page, file, anchor in links:
        target = (page.parent / file if file else page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", target, re.MULTILINE)
        assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "operations" / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) > 5
    assert [page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in index] == []
