"""Where a measurement happens: `hooksaga up` as users run it, and a receiver, each a process of its own.

Everything is in a temporary folder, and gone at the end, also after Ctrl-C or SIGTERM. Settings of hooksaga in the
environment count, but for the database and the key.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from bench.figures import as_json
from bench.load import Load, MeasurementFailed
from bench.processor import cpu_of_server, cpu_of_tree
from bench.receiver import POLL_SECONDS, STALLED_SECONDS, RunningReceiver, running_receiver
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.cli.signals import interrupt_on_sigterm
from hooksaga.core.secrets_keys import split_keys
from hooksaga.core.signing import encode_secret
from hooksaga.local.postgres import EmbeddedPostgres

START_SECONDS = 60
STOP_SECONDS = 60
HOOKSAGA = "hooksaga.cli.app"
NOT_OURS = ("HOOKSAGA_DATABASE_URL", "HOOKSAGA_API_KEY")


@dataclass(frozen=True, slots=True)
class Place:
    """A running `hooksaga up`. pid: of its process. database_url: of its owner."""

    folder: Path
    receiver: RunningReceiver
    url: str
    key: str
    pid: int
    database_url: str

    def load(self, *event_types: str, count: int, **options: Any) -> Load:
        return Load(self.url, self.key, event_types, count, **options)

    def subscribe(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """A verified subscription for each event type and path of the receiver, in one statement; their ids."""
        box = SecretBox(split_keys((self.folder / "secrets.key").read_text(encoding="ascii").strip()))
        sealed = [box.seal(encode_secret(os.urandom(32))) for _ in pairs]
        types, urls = [one for one, _ in pairs], [f"{self.receiver.url}{path}" for _, path in pairs]
        rows = self.run(SUBSCRIBE, (types, urls, sealed))
        return [row[0] for row in rows]

    def run(self, statement: LiteralString, params: Sequence[Any] | None = None) -> list[Any]:
        """The rows of the answer, as the database's owner."""
        return rows_of(self.database_url, statement, params)

    def wait_until_none(self, statement: LiteralString, params: Sequence[Any] | None = None) -> None:
        """Until the statement counts 0. Raises MeasurementFailed after STALLED_SECONDS."""
        give_up = time.monotonic() + STALLED_SECONDS
        while left := self.run(statement, params)[0][0]:
            if time.monotonic() > give_up:
                raise MeasurementFailed(f"{left} left after {STALLED_SECONDS} s: {statement.strip()}")
            time.sleep(POLL_SECONDS)

    def wait_until_delivered(self) -> None:
        """Until no attempt is in progress."""
        self.wait_until_none(
            "SELECT count(*) FROM (SELECT FROM webhook_delivery_sagas WHERE status = 'InProgress' LIMIT 1) AS open"
        )

    def wait_until_routed(self) -> None:
        self.wait_until_none("SELECT count(*) FROM (SELECT FROM routing_outbox LIMIT 1) AS waiting")

    def cpu(self) -> dict[str, float]:
        """Processor seconds so far, by process."""
        return {
            "hooksaga": cpu_of_tree(self.pid),
            "postgres": cpu_of_server(self.folder),
            "receiver": cpu_of_tree(self.receiver.pid),
        }


def rows_of(url: str, statement: LiteralString, params: Sequence[Any] | None = None) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        answer = connection.execute(statement, params)
        return answer.fetchall() if answer.description else []


SUBSCRIBE: LiteralString = """
    WITH wanted AS (
        SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])
            WITH ORDINALITY AS t (event_type, callback_url, sealed, place)
    ), made AS (
        INSERT INTO subscriptions (event_types, callback_url, active, verified)
        SELECT ARRAY[event_type], callback_url, true, true FROM wanted ORDER BY place RETURNING id, callback_url
    ), secret AS (
        INSERT INTO subscription_secrets (subscription_id, secret)
        SELECT made.id, wanted.sealed FROM made JOIN wanted USING (callback_url)
    )
    SELECT id FROM made ORDER BY id"""
"""The callback URLs have to differ."""


@contextmanager
def new_place(
    *options: str, program: str = HOOKSAGA, environment: Mapping[str, str] | None = None
) -> Generator[Place]:
    """On an empty database; like running_on."""
    with (
        temporary_folder() as folder,
        running_receiver(folder) as receiver,
        running_on(folder, receiver, *options, program=program, environment=environment) as place,
    ):
        yield place


@contextmanager
def temporary_folder() -> Generator[Path]:
    """Its server is stopped before it goes."""
    with tempfile.TemporaryDirectory(prefix="hooksaga-bench-") as name:
        folder = Path(name).resolve()
        try:
            yield folder
        finally:
            EmbeddedPostgres(folder).stop()


@contextmanager
def running_on(
    folder: Path,
    receiver: RunningReceiver,
    *options: str,
    program: str = HOOKSAGA,
    environment: Mapping[str, str] | None = None,
) -> Generator[Place]:
    """`hooksaga up` on a data folder, as a process; at the end it is stopped, and its database with it.

    options: of the command. program: the module that is the command.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    ours = {
        "HOOKSAGA_DATA_DIR": str(folder),
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
        "HOOKSAGA_CA_FILE": str(receiver.ca_file),
    }
    output = folder / "output"
    command = [sys.executable, "-m", program, "up", "--port", "0", *options]
    with output.open("wb") as stdout, (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env=inherited | ours | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=log,
        )
    try:
        url = _ready_at(process, output)
        key = (folder / "api_key").read_text(encoding="ascii").strip()
        database_url = EmbeddedPostgres(folder).start()  # it runs: this asks where
        yield Place(folder, receiver, url, key, process.pid, database_url)
    finally:
        _stop(process)


@contextmanager
def running_server(folder: Path) -> Generator[str]:
    """The PostgreSQL of a data folder that nothing else uses meanwhile; its URL."""
    server = EmbeddedPostgres(folder)
    try:
        yield server.start()
    finally:
        server.stop()


@contextmanager
def empty_database() -> Generator[str]:
    """A database with hooksaga's schema in a temporary folder; its URL."""
    with temporary_folder() as folder, running_server(folder) as url:
        migrate(DatabaseAddress(url))
        yield url


def _ready_at(process: subprocess.Popen[bytes], output: Path) -> str:
    give_up = time.monotonic() + START_SECONDS
    while not (ready := re.search(r"ready at (http://\S+)", output.read_text(encoding="utf-8"))):
        if process.poll() is not None or time.monotonic() > give_up:
            log = output.with_name("log").read_text(encoding="utf-8", errors="replace")
            raise MeasurementFailed(f"hooksaga up did not start: {log[-2000:]}")
        time.sleep(POLL_SECONDS)
    return ready[1]


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """With what all of these commands take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def report(what: str) -> None:
    """Print the current step."""
    print(what, file=sys.stderr, flush=True)


def run_command(measure: Callable[[], Any], table: Callable[[Any], str], *, json: bool) -> None:
    """Measure, and print what came of it. Exits with 1 and a message when nothing did."""
    interrupt_on_sigterm()
    try:
        result = measure()
    except MeasurementFailed as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
    print(as_json(result) if json else table(result))


def run_at_new_place(
    parser: argparse.ArgumentParser, measure: Callable[..., Any], table: Callable[[Any], str]
) -> None:
    """Like run_command, at a new place, with the parser's options as arguments."""
    options = vars(parser.parse_args())
    json = options.pop("json")

    def measure_there() -> Any:
        with new_place() as place:
            return measure(place, **options)

    run_command(measure_there, table, json=json)
