"""One running system per test process, with a receiver, and the commands that talk to it."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import hooksaga.runtime.telemetry as _telemetry  # noqa: F401 - first here: it keeps the stderr of its import
from hooksaga.cli.app import app
from hooksaga.local.postgres import EmbeddedPostgres
from tests.cli.processes import CommandProcess

Run = Callable[..., Result]
RunJson = Callable[..., Any]

MEMORY = Path("/dev/shm")
ROOM_FOR_SERVERS = 6 * 2**30
QUICK_RETRIES = {
    "HOOKSAGA_BASE_DELAY_SECONDS": "0.05",
    "HOOKSAGA_MAX_RETRY_LIMIT": "2",
    "HOOKSAGA_RETRY_JITTER": "0",
    "HOOKSAGA_BREAKER_FAILURES": "1000",
}


@dataclass(frozen=True)
class RunningSystem:
    """`up` and `receiver` as processes on one data folder. settings: what a command needs to find them."""

    folder: Path
    url: str
    receiver_url: str
    settings: dict[str, str]


@pytest.fixture(scope="session")
def make_folder() -> Iterator[Callable[[], Path]]:
    """Makes data folders, in memory where there is plenty. Their servers are stopped and they go at the end."""
    made: list[Path] = []
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_FOR_SERVERS

    def make() -> Path:
        prefix = f"hooksaga-tests-{os.getpid()}-"  # as the servers of killed tests are found
        made.append(Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if in_memory else None)))
        return made[-1]

    yield make
    for folder in made:
        EmbeddedPostgres(folder).stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def receiver_url(make_folder: Callable[[], Path]) -> Iterator[tuple[str, Path]]:
    """The receiver's URL, and the folder with its certificate."""
    folder = make_folder()
    process = CommandProcess(folder, {"HOOKSAGA_DATA_DIR": str(folder)}, "receiver", "--port", "0")
    try:
        yield process.wait_for(r"receiver at (https://\S+),"), folder
        assert process.stop() == 0
    finally:
        process.kill()


@pytest.fixture(scope="session")
def running_system(receiver_url: tuple[str, Path]) -> Iterator[RunningSystem]:
    """Everything, with retries that take no time."""
    url, folder = receiver_url
    settings = {"HOOKSAGA_DATA_DIR": str(folder)}
    process = CommandProcess(folder, settings | QUICK_RETRIES, "up", "--port", "0", "--local-receivers")
    try:
        api_url = process.wait_for(r"ready at (http://\S+)")
        yield RunningSystem(folder, api_url, url, settings | {"HOOKSAGA_API_URL": api_url})
        assert process.stop() == 0
    finally:
        process.kill()


@pytest.fixture
def run(running_system: RunningSystem) -> Run:
    """Runs a command in this process, by default against the running system."""
    return runner_with(running_system.settings)


@pytest.fixture
def run_json(run: Run) -> RunJson:
    """Runs a command with --json, which has to be good, and gives what it prints."""

    def invoke(*arguments: str, **options: Any) -> Any:
        result = run(*arguments, "--json", **options)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


def runner_with(settings: dict[str, str]) -> Run:
    """Runs commands with these settings and no others of ours."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HOOKSAGA_")}

    def invoke(*arguments: str, stdin: bytes | None = None, **changed: str | None) -> Result:
        return CliRunner().invoke(app, arguments, input=stdin, env=unset | settings | changed)

    return invoke


@pytest.fixture
def subscribed(run_json: RunJson, running_system: RunningSystem) -> Callable[[str], dict[str, Any]]:
    """Makes a verified subscription to a path of the receiver, of an event type of its own."""

    def subscribe(path: str) -> dict[str, Any]:
        event_type = f"test.{os.urandom(8).hex()}"
        wanted = ("--event-type", event_type, "--callback-url", running_system.receiver_url + path)
        created = run_json("subscriptions", "create", *wanted)
        run_json("subscriptions", "verify", str(created["id"]))
        return created

    return subscribe
