"""A base backup under load, restored to a moment after it and elsewhere, with the commands of the page: the audit is
clean, deliveries go on, nothing that had ended is sent again, and no id comes again."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from hooksaga.local.database_account import account_of
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.postgres_build import binaries
from hooksaga.local.tls import Certificates
from tests.api.http_client import Answer, event_body
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.load import Told, together
from tests.local.restored import command, tool
from tests.local.under_load import EVENT_TYPE, KINDS, audited, load_on, subscribe

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations" / "database.md").read_text(
    encoding="utf-8"
)
SECTION = PAGE.split("## Restore to a point in time\n", 1)[1].split("\n## ", 1)[0]
BASE = ("--wal-method=stream", "--checkpoint=fast")
(AFTER,) = re.findall(r"^ *```sql\n(.*?)^ *```", SECTION, re.MULTILINE | re.DOTALL)

OPEN = "SELECT count(*) FROM webhook_delivery_sagas WHERE status NOT IN ('Completed', 'DeadLettered')"


def test_the_page_says_what_is_tested_here() -> None:
    assert f"pg_basebackup --pgdata=base {' '.join(BASE)} --dbname=" in SECTION
    assert "pg_receivewal --directory=wal --dbname=" in SECTION
    for line in settings_of_recovery(Path("/path/to/wal"), "TIME").splitlines():
        assert line.split(" = ")[0] in SECTION


def settings_of_recovery(wal: Path, moment: str) -> str:
    settings = {
        "restore_command": f"cp {wal}/%f %p",
        "recovery_target_time": moment,
        "recovery_target_action": "promote",
    }
    return "".join(f"{name} = '{value}'\n" for name, value in settings.items())


@contextmanager
def archiving(url: str, wal: Path) -> Iterator[None]:
    """Receives the log of a server, as a program beside it."""
    wal.mkdir()
    program = [str(binaries() / "pg_receivewal"), f"--directory={wal}", f"--dbname={url}"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: any(wal.iterdir()), "the log is received", 30)
        yield
        with psycopg.connect(url, autocommit=True) as connection:
            (segment,) = connection.execute("SELECT pg_walfile_name(pg_current_wal_lsn())").fetchone() or (
                "",
            )
            connection.execute("SELECT pg_switch_wal()")
        wait_until((wal / segment).exists, "the last segment is whole", 30)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@dataclass(frozen=True)
class Backup:
    """moment: what is restored. told: what producers were told until then, and in_all. greatest: the last saga's id."""

    moment: str
    told: Told
    in_all: Told
    greatest: int


def back_up(up: UpProcess, folder: Path) -> Backup:
    """A base backup and the log of a system under load, to a moment after the backup and beyond it."""
    url = up.server.start()
    with archiving(url, folder / "wal"):
        with load_on(up) as producers:
            tool("pg_basebackup", f"--pgdata={folder / 'base'}", *BASE, f"--dbname={url}")
            more = len(together(producers).accepted) + 5
            wait_until(lambda: len(together(producers).accepted) > more, "events after the backup", 60)
            told = together(producers)
            (now,) = up.rows("SELECT clock_timestamp()::text AS now")
            later = len(together(producers).accepted) + 20
            wait_until(lambda: len(together(producers).accepted) > later, "events after the moment", 60)
        (row,) = up.rows("SELECT max(id) AS id FROM webhook_delivery_sagas")
    return Backup(now["now"], told, together(producers), row["id"])


def restore_elsewhere(up: UpProcess, folder: Path, moment: str) -> Path:
    """The steps of the page: the base backup becomes the data folder of another server, which replays the log."""
    place = folder / "elsewhere"
    place.mkdir()
    for name in ("secrets.key", "tls"):
        kept = up.folder / name
        (shutil.copytree if kept.is_dir() else shutil.copy)(kept, place / name)
    data = place / "postgres"
    shutil.move(folder / "base", data)
    with (data / "postgresql.auto.conf").open("a") as file:
        file.write(settings_of_recovery(folder / "wal", moment))
    (data / "recovery.signal").touch()
    account = account_of(up.folder)
    for path in (place, data, *data.rglob("*"), folder / "wal", *(folder / "wal").iterdir()):
        account.give(path)
    if os.geteuid() == 0:
        folder.chmod(0o755)
    return place


@pytest.fixture
def other(up: UpProcess, folder: Path, certificates: Certificates) -> Iterator[UpProcess]:
    """The system in the place of the restore."""
    process = UpProcess(folder / "elsewhere", certificates, HOOKSAGA_BASE_DELAY_SECONDS="1")
    yield process
    process.close()


@pytest.mark.long
def test_a_base_backup_under_load_is_restored_to_a_moment(
    up: UpProcess, other: UpProcess, recorder: Recorder, folder: Path
) -> None:
    up.start()
    subscribe(up, recorder)
    backup = back_up(up, folder)
    assert up.terminate() == 0
    assert backup.in_all.faults == []
    recorder.stop()
    up.server.stop()

    restore_elsewhere(up, folder, backup.moment)
    url = EmbeddedPostgres(folder / "elsewhere").start()
    stored = prepare_restored(url, backup.moment)
    assert set(backup.told.accepted) <= stored
    assert command(url, "migrate") == "the schema is up to date\n"
    assert "No process works on this database" in command(url, "audit")

    ended, arrived = ended_and_arrived(url, recorder)
    assert ended
    recorder.start()
    other.start()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            wait_until(lambda: connection.execute(OPEN).fetchone() == (0,), "every saga has ended", 90)
        send_again_what_was_lost(other, url, backup, stored)
        assert audited(url) == (False, [])
    finally:
        assert other.terminate() == 0
    check_arrivals(recorder, backup.told, ended, arrived)


def prepare_restored(url: str, moment: str) -> set[str]:
    """Wait until the server accepts writes, and run the statements of the page. Returns the keys of its events."""
    with psycopg.connect(url, autocommit=True) as connection:
        is_standby = "SELECT pg_is_in_recovery()"
        wait_until(lambda: connection.execute(is_standby).fetchone() == (False,), "it accepts writes", 60)
        keys = connection.execute("SELECT external_id FROM events WHERE external_id IS NOT NULL").fetchall()
        newest = connection.execute("SELECT max(created_at) FROM events").fetchone()
        assert newest is not None
        assert newest[0] <= datetime.fromisoformat(moment)
        connection.execute(AFTER.encode())
    return {key for (key,) in keys}


def ended_and_arrived(
    url: str, recorder: Recorder
) -> tuple[set[tuple[str, str]], dict[tuple[str, str], int]]:
    """The deliveries that had ended at the moment, and how often each delivery has arrived until now."""
    query = """
        SELECT split_part(b.callback_url, '/', 4) AS kind, e.webhook_id::text
          FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
          JOIN subscriptions b ON b.id = s.subscription_id
         WHERE s.status IN ('Completed', 'DeadLettered')"""
    with psycopg.connect(url) as connection:
        ended = {(kind, "evt_" + one.replace("-", "")) for kind, one in connection.execute(query)}
    return ended, arrivals(recorder)


def arrivals(recorder: Recorder) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in recorder.events():
        key = (one.path.split("/")[1], one.header("webhook-id"))
        found[key] = found.get(key, 0) + 1
    return found


def send_again_what_was_lost(up: UpProcess, url: str, backup: Backup, stored: set[str]) -> None:
    """A repeat of an event from before the moment is the same event; a lost one is new, and has new ids."""
    kept, lost = min(backup.told.accepted), min(backup.in_all.accepted.keys() - stored)
    again, new = (repeat(up, backup.in_all, key) for key in (kept, lost))
    assert (again.status, again.json()["id"]) == (200, backup.told.accepted[kept][0])
    assert new.status == 202
    assert new.json()["id"] != backup.in_all.accepted[lost][0]
    newest = "SELECT min(id) FROM webhook_delivery_sagas WHERE event_id = (SELECT max(id) FROM events)"
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(newest).fetchone() != (None,), "it is routed", 60)
        (saga_id,) = connection.execute(newest).fetchone() or (0,)
        assert saga_id > backup.greatest
        wait_until(lambda: connection.execute(OPEN).fetchone() == (0,), "it is delivered", 60)
    old = up.api.post(f"/v1/sagas/{backup.greatest}/cancel")
    assert old.status == 404, "an id from after the moment means no other delivery"


def repeat(up: UpProcess, told: Told, key: str) -> Answer:
    """The same request as the producer's."""
    body = event_body(EVENT_TYPE, told.accepted[key][1], ordering_key=f"producer {key.split('-')[1]}")
    return up.api.post_event(body, ("idempotency-key", key))


def check_arrivals(
    recorder: Recorder, told: Told, ended: set[tuple[str, str]], before: dict[tuple[str, str], int]
) -> None:
    """What had ended is not sent again; everything from before the moment has arrived."""
    after = arrivals(recorder)
    again = {key for key in ended if after.get(key, 0) > before.get(key, 0)}
    assert again == set()
    ids = {event_id for event_id, _ in told.accepted.values()}
    for kind in KINDS[1:]:
        name = kind.split("/")[1]
        assert ids <= {webhook_id for path, webhook_id in after if path == name}
