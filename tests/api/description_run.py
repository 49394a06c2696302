"""One run of schemathesis on the API's own description, and what it has to have done."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.generators.openapi_file import openapi_text
from tests.api.http_client import Api
from tests.hostile_cases import note_answer

HERE = Path(__file__).resolve().parent
SECONDS = 600
MAX_SECONDS = 1800


def check_description(api: Api, ids: dict[str, int], folder: Path, phases: str, *, examples: int) -> None:
    description = folder / "openapi.json"
    description.write_text(openapi_text(), encoding="utf-8")
    command = [Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml"]
    options = ["--checks", "all", "--phases", phases, "--max-examples", str(examples), "--no-color"]
    reports = ["--report", "json,ndjson", "--report-dir", str(folder)]
    reports += [
        "--report-json-path",
        str(folder / "run.json"),
        "--report-ndjson-path",
        str(folder / "run.ndjson"),
    ]
    target = ["--url", f"http://127.0.0.1:{api.port}", "--header", f"Authorization: Bearer {api.key}"]
    done = subprocess.run(
        [*command, "run", *options, *reports, *target, description],
        cwd=HERE.parents[1],
        env={**os.environ, "HOOKSAGA_TEST_IDS": json.dumps(ids)},
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check_run(json.loads((folder / "run.json").read_text()), statuses_of(folder / "run.ndjson"))
    assert api.get("/healthz").status == 200


def check_run(run: dict[str, Any], statuses: Counter[int]) -> None:
    """Everything was asked, and much of it was accepted: else the checks had nothing to look at."""
    assert run["complete"]
    assert run["operations"]["tested"] == run["operations"]["total"] == len(list(operations()))
    assert run["test_cases"]["errored"] == 0
    assert statuses[200] >= 100, statuses
    assert {200, 201, 202, 204, 400, 404, 409, 422} <= statuses.keys(), statuses


def operations() -> Iterator[tuple[str, str]]:
    for path, methods in json.loads(openapi_text())["paths"].items():
        for method in methods:
            yield method, path


def statuses_of(report: Path) -> Counter[int]:
    """How often each status was answered."""
    statuses: Counter[int] = Counter()
    for line in report.read_text(encoding="utf-8").splitlines():
        scenario = json.loads(line).get("ScenarioFinished", {})
        for interaction in scenario.get("recorder", {}).get("interactions", {}).values():
            if interaction["response"] is not None:
                statuses[interaction["response"]["status_code"]] += 1
    for status in statuses:
        note_answer(status)
    return statuses
