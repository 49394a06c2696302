"""`hooksaga up` as a real process: how it starts, how it ends, what it keeps."""

import os
import signal
import socket
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from hooksaga.local.database_account import account_of, is_root
from tests.cli.conftest import Run, runner_with
from tests.cli.processes import CommandProcess, wait_until

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

MakeFolder = Callable[[], Path]
Start = Callable[..., CommandProcess]


@pytest.fixture(scope="session")
def migrated_folder(make_folder: MakeFolder) -> Path:
    """A data folder whose database is set up, so that tests do not wait for that."""
    folder = make_folder()
    assert runner_with({"HOOKSAGA_DATA_DIR": str(folder)})("migrate").exit_code == 0
    return folder


@pytest.fixture
def start(migrated_folder: Path) -> Iterator[Start]:
    """Starts `up`, by default on the folder; whatever is left running is killed at the end."""
    started: list[CommandProcess] = []

    def up(*arguments: str, **settings: str) -> CommandProcess:
        wanted = {"HOOKSAGA_DATA_DIR": str(migrated_folder), **settings}
        started.append(CommandProcess(migrated_folder, wanted, "up", *(arguments or ("--port", "0"))))
        return started[-1]

    yield up
    for process in started:
        process.kill()


@pytest.fixture
def talk_to(migrated_folder: Path) -> Callable[[CommandProcess], Run]:
    """Commands for an `up` that is ready, with the key in its folder."""

    def ready(process: CommandProcess) -> Run:
        url = process.wait_for(r"ready at (http://\S+)")
        return runner_with({"HOOKSAGA_DATA_DIR": str(migrated_folder), "HOOKSAGA_API_URL": url})

    return ready


def subscribe(run: Run, url: str) -> str:
    """The event type of a new, verified subscription."""
    event_type = f"test.{os.urandom(8).hex()}"
    created = run("subscriptions", "create", "--event-type", event_type, "--callback-url", url)
    assert created.exit_code == 0, created.output
    assert run("subscriptions", "verify", created.stdout.split()[1]).exit_code == 0
    return event_type


def send(run: Run, event_type: str) -> str:
    """The id of a new event."""
    return run("send", "-", "--event-type", event_type, stdin=b'{"n": 1}').stdout.split()[0]


def test_it_says_where_it_is_and_what_to_do_next(start: Start) -> None:
    process = start(HOOKSAGA_API_KEY="hs_a_key_of_my_own")
    url = process.wait_for(r"ready at (http://\S+)")
    process.wait_for("(stats --watch)")
    assert "the one in HOOKSAGA_API_KEY" in process.output
    assert f"export HOOKSAGA_API_URL={url}" in process.output
    assert httpx.get(f"{url}/healthz", trust_env=False).json() == {"status": "ok"}
    assert process.stop(signal.SIGINT) == 0


@pytest.mark.parametrize("is_found", [True, False])
def test_what_to_do_next_can_be_typed_as_it_stands(start: Start, is_found: bool) -> None:
    """Also where the command is in no folder of the path, as after `make up`."""
    scripts = sysconfig.get_path("scripts")
    process = start(PATH=f"{scripts}:{SYSTEM_PATH}" if is_found else SYSTEM_PATH)
    process.wait_for(r"(stats --watch)")
    assert (f'export PATH="{scripts}:$PATH"' in process.output) is not is_found


def test_sigterm_lets_what_is_in_flight_end(
    start: Start,
    talk_to: Callable[[CommandProcess], Run],
    receiver_url: tuple[str, Path],
) -> None:
    settings = {
        "HOOKSAGA_CA_FILE": str(receiver_url[1] / "tls" / "ca.pem"),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
    }
    process = start(**settings)
    run = talk_to(process)
    event_id = send(run, subscribe(run, f"{receiver_url[0]}/slow/1500"))
    wait_until(lambda: '"jobs_leased":1,' in run("stats", "--json").stdout, "the POST has begun")
    assert process.stop() == 0
    assert "waits for requests in flight" in process.errors
    assert "Traceback" not in process.errors
    again = start(**settings)
    run_again = talk_to(again)
    wait_until(
        lambda: "Completed, after 1 attempt" in run_again("events", "show", event_id).stdout,
        "the result that was recorded at the end is applied",
    )
    assert again.stop() == 0


def test_a_killed_one_loses_nothing(
    start: Start,
    talk_to: Callable[[CommandProcess], Run],
    receiver_url: tuple[str, Path],
) -> None:
    settings = {
        "HOOKSAGA_CA_FILE": str(receiver_url[1] / "tls" / "ca.pem"),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
    }
    process = start(**settings)
    run = talk_to(process)
    event_type = subscribe(run, f"{receiver_url[0]}/ok")
    events = [send(run, event_type) for _ in range(3)]
    process.kill()
    again = start(**settings)
    run = talk_to(again)
    for event_id in events:
        assert event_id in run("events", "show", event_id).stdout
    late = send(run, event_type)
    wait_until(lambda: "Completed" in run("events", "show", late).stdout, "it delivers again")
    assert again.stop() == 0


def test_a_second_signal_stops_it_at_once(
    start: Start,
    talk_to: Callable[[CommandProcess], Run],
    receiver_url: tuple[str, Path],
) -> None:
    settings = {
        "HOOKSAGA_CA_FILE": str(receiver_url[1] / "tls" / "ca.pem"),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
    }
    process = start(**settings)
    run = talk_to(process)
    send(run, subscribe(run, f"{receiver_url[0]}/slow/15000"))
    wait_until(lambda: '"jobs_leased":1,' in run("stats", "--json").stdout, "the POST has begun")
    process.process.send_signal(signal.SIGTERM)
    wait_until(lambda: "repeat the signal to stop at once" in process.errors, "it is stopping")
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(5) == -signal.SIGTERM


def test_a_port_in_use_is_said_in_one_line(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        process = start("--port", port)
        assert process.ended() == 2
    assert process.errors == (
        f"hooksaga: port {port} on 127.0.0.1 is in use; choose another with --port (0 selects a free port)\n"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOOKSAGA_CONCURRENCY", "many"),
        ("HOOKSAGA_LEASE_SECONDS", "1"),
        ("HOOKSAGA_EGRESS_ALLOW", "everything"),
        ("HOOKSAGA_CA_FILE", "/nowhere.pem"),
        ("HOOKSAGA_SECRETS_KEY", "short"),
        ("HOOKSAGA_API_KEY", "short"),
    ],
)
def test_a_bad_setting_is_said_by_its_name(name: str, value: str, make_folder: MakeFolder) -> None:
    result = runner_with({name: value})("up", "--port", "0")
    assert result.exit_code == 2
    assert name in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_database_that_cannot_start_is_said(start: Start, make_folder: MakeFolder) -> None:
    folder = make_folder()
    broken = folder / "postgres"
    broken.mkdir()
    (broken / "PG_VERSION").write_text("7\n")
    account = account_of(folder)
    for path in (broken, broken / "PG_VERSION"):
        account.give(path)
    process = start(HOOKSAGA_DATA_DIR=str(folder))
    assert process.ended() == 1
    assert f"hooksaga: PostgreSQL in {broken} " in process.errors
    assert ("hooksaga: PostgreSQL refuses to run as root" in process.errors) is is_root()
    assert "Traceback" not in process.errors


def test_a_data_folder_that_is_none_is_said(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = start(HOOKSAGA_DATA_DIR=str(tmp_path / "file"))
    assert process.ended() == 1
    assert str(tmp_path / "file") in process.errors
    assert "Traceback" not in process.errors


def test_a_database_that_is_away_is_said(start: Start) -> None:
    process = start(HOOKSAGA_DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")
    assert process.ended() == 1
    assert "HOOKSAGA_DATABASE_URL" in process.errors
    assert "Traceback" not in process.errors
