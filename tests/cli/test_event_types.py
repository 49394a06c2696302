"""The catalogue from the command line: a file is applied, shown and written again."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run, RunJson

FILE = """{"event_types": {
  "NAME.created": {
    "description": "An order — with a name.",
    "schema": {"type": "object", "properties": {"total": {"maximum": 1e2}}},
    "sample": {"total": 1.10},
    "attributes": [{"name": "total", "pointer": "/total", "kind": "number"}],
    "on_mismatch": "warn"
  },
  "NAME/paid": {}
}}"""


@pytest.fixture
def name() -> str:
    return f"cli-{os.urandom(4).hex()}"


@pytest.fixture
def file(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "event_types.json"
    path.write_text(FILE.replace("NAME", name), encoding="utf-8")
    return path


def test_a_sync_is_safe_to_repeat(run: Run, run_json: RunJson, file: Path, name: str) -> None:
    assert run_json("event-types", "sync", str(file))["created"] == [f"{name}.created", f"{name}/paid"]
    again = run("event-types", "sync", str(file))
    assert "0 created, 0 changed, 2 unchanged, 0 archived, 0 deleted" in again.stdout
    shown = run("event-types", "show", f"{name}.created").stdout
    assert '"total": 1.10' in shown
    assert '"maximum": 1e2' in shown
    assert f"{name}/paid" in run("event-types", "list").stdout
    entry = run_json("event-types", "show", f"{name}.created")
    assert (entry["on_mismatch"], entry["sample"]) == ("warn", {"total": 1.1})


def test_a_dry_run_shows_the_difference_and_changes_nothing(
    run: Run, run_json: RunJson, file: Path, name: str
) -> None:
    run("event-types", "sync", str(file))
    file.write_text(file.read_text("utf-8").replace("1.10", "1.20"), encoding="utf-8")
    told = run("event-types", "sync", str(file), "--dry-run").stdout
    assert '-    "total": 1.10' in told
    assert '+    "total": 1.20' in told
    assert "1 changed" in told
    assert run_json("event-types", "show", f"{name}.created")["sample"] == {"total": 1.1}
    run("event-types", "sync", str(file))
    assert run_json("event-types", "show", f"{name}.created")["sample"] == {"total": 1.2}


def test_missing_types_stay_unless_an_option_says_otherwise(
    run: Run, run_json: RunJson, file: Path, name: str
) -> None:
    run("event-types", "sync", str(file))
    exported = json.loads(run("event-types", "export", "-").stdout)
    del exported["event_types"][f"{name}/paid"]
    file.write_text(json.dumps(exported), encoding="utf-8")
    run("event-types", "sync", str(file))
    assert run_json("event-types", "show", f"{name}/paid")["archived"] is False
    assert run_json("event-types", "sync", str(file), "--archive-missing")["archived"] == [f"{name}/paid"]
    assert run_json("event-types", "show", f"{name}/paid")["archived"] is True
    assert run_json("event-types", "sync", str(file), "--delete-missing")["deleted"] == [f"{name}/paid"]
    missing = run("event-types", "show", f"{name}/paid")
    assert (missing.exit_code, "event_type_not_found" in missing.stderr) == (1, True)


def test_an_export_is_a_file_for_sync(run: Run, run_json: RunJson, file: Path, tmp_path: Path) -> None:
    run("event-types", "sync", str(file))
    exported = tmp_path / "exported.json"
    run("event-types", "export", str(exported))
    done = run_json("event-types", "sync", str(exported))
    assert (done["created"], done["changed"], done["archived"]) == ([], [], [])
    assert done["unchanged"] >= 2


def test_a_warning_is_told_to_the_sender(run: Run, file: Path, name: str) -> None:
    run("event-types", "sync", str(file))
    sent = run("send", "-", "--event-type", f"{name}.created", stdin=b'{"total": 101}')
    assert sent.exit_code == 0
    assert "warning: payload/total: the value is greater than the maximum of" in sent.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is not"),
        ('{"event_types": []}', "is not"),
        ("{", "is not"),
        ('{"event_types": {"a": {"colour": 1}}}', "unknown field 'colour'"),
    ],
)
def test_another_file_is_refused(run: Run, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text, encoding="utf-8")
    done = run("event-types", "sync", str(path))
    assert done.exit_code == 2
    assert said in done.stderr


def test_an_invalid_schema_is_told_with_its_place(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(f'{{"event_types": {{"{name}": {{"schema": {{"type": "text"}}}}}}}}', encoding="utf-8")
    done = run("event-types", "sync", str(path))
    assert done.exit_code == 1
    assert "invalid_schema (422): schema/type" in done.stderr
