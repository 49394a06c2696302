"""`hooksaga invoke FUNCTION FILE`."""

import json
from pathlib import Path

import psycopg
import pytest
import typer
from typer.testing import CliRunner, Result

from hooksaga.cli.failures import CommandGroup
from hooksaga.cli.function import invoke

SAMPLES = Path(__file__).parents[2] / "events-samples"


@pytest.fixture(autouse=True)
def configured(
    module_database: str, runtime_client: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKSAGA_DATABASE_URL", module_database)
    monkeypatch.setenv("HOOKSAGA_DATA_DIR", str(tmp_path / "data"))


def run(*arguments: str) -> Result:
    app = typer.Typer(cls=CommandGroup)
    app.callback()(lambda: None)
    app.command()(invoke)
    return CliRunner().invoke(app, ["invoke", *arguments])


def test_a_sample_is_answered_with_this_machines_key_and_without_queues(module_database: str) -> None:
    result = run("ingest", str(SAMPLES / "ingest/api_gateway.order_created.json"))
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)["answer"]
    assert answer["statusCode"] == 202
    with psycopg.connect(module_database) as connection:
        assert connection.execute("SELECT count(*) FROM routing_outbox").fetchone() == (1,)
    result = run("router", str(SAMPLES / "router/eventbridge.tick.json"))
    assert json.loads(result.stdout)["answer"] == {"routed": 1}


def test_a_function_that_fails_ends_with_1_and_its_error(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text("null")
    result = run("admin", str(path))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["errorType"]


@pytest.mark.parametrize(
    ("function", "content", "reason"),
    [
        ("nobody", "{}", "unknown function nobody"),
        ("router", "{", "the file is not valid JSON"),
        ("router", None, "cannot read"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(
    tmp_path: Path, function: str, content: str | None, reason: str
) -> None:
    path = tmp_path / "event.json"
    if content is not None:
        path.write_text(content)
    result = run(function, str(path))
    assert result.exit_code == 2
    assert reason in result.output
