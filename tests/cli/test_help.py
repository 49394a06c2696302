"""The help texts of the command, and its start time."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from hooksaga.cli.app import app

SLOW_TO_IMPORT = ("aiohttp", "httpx", "psycopg", "pydantic", "starlette", "uvicorn", "shared")
GROUPS = {
    "events": ["list", "find", "show", "tail"],
    "attempts": ["list", "show"],
    "subscriptions": ["create", "list", "show", "update", "delete", "verify", "backfill"],
    "dead-letters": ["list", "show", "requeue"],
    "bulk": ["list", "show", "watch", "pause", "resume", "stop", "rate"],
    "keys": ["create", "list", "revoke"],
    "secrets": ["new-key", "reseal"],
}
COMMANDS = [
    "up",
    "demo",
    "receiver",
    "bench",
    "send",
    "explain",
    "stats",
    "migrate",
    "audit",
    "prune",
    "erase",
    "doctor",
    *GROUPS,
]


def test_nothing_slow_is_imported_before_a_command_runs() -> None:
    program = "import sys; from hooksaga.cli.app import build; build(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    wanted = set(SLOW_TO_IMPORT) - {"pydantic"}  # typer itself checks values with it
    assert sorted(wanted & set(done.stdout.split())) == []


def test_a_call_imports_neither_other_commands_nor_what_it_does_not_use() -> None:
    """The processor time of a call is mostly imports."""
    program = """
import sys
from hooksaga.cli.app import main
sys.argv = ["hooksaga", "subscriptions", "list", "--api-key", "x", "--api-url", "http://127.0.0.1:1"]
try:
    main()
except SystemExit as end:
    print(end.code, *sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    code, *modules = done.stdout.split()
    assert code == "1"
    assert "no answer from http://127.0.0.1:1" in done.stderr
    unused = {"asyncio", "httpx", "psycopg", "pydantic_settings", "rich", "starlette", "uvicorn"}
    assert sorted((unused | {"hooksaga.cli.run", "hooksaga.cli.keys"}) & set(modules)) == []


def test_the_help_names_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert [name for name in COMMANDS if name not in shown] == []


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_names_its_commands(group: str) -> None:
    shown = CliRunner().invoke(app, [group, "--help"]).stdout
    assert GROUPS[group]
    assert [name for name in GROUPS[group] if name not in shown] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.stdout


def test_the_version_is_shown() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("hooksaga 0.")


@pytest.mark.parametrize("wrong", [["nothing"], ["up", "--nothing"], ["up", "--port", "70000"], ["send"]])
def test_wrong_use_ends_with_2(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, wrong).exit_code == 2
