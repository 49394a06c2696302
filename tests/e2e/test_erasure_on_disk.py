"""Marked bytes, delivered by a real `up` and erased: none are left in the files of the database, in logs or output.

The write-ahead log is left out: it keeps what was written until its files are overwritten
(docs/operations/data-life.md).
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from aiohttp import web

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess

MARK = b"mark-5f1e0c-of-a-person"
TABLES = (
    "events, webhook_delivery_jobs, webhook_delivery_sagas, dead_letters, routing_outbox, subscription_flow"
)


@pytest.fixture
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-erasure-"))
    process = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=EmbeddedPostgres(folder).start(),  # it would start its own again
        HOOKSAGA_MAX_RETRY_LIMIT="3",
        HOOKSAGA_BASE_DELAY_SECONDS="600",
    )
    process.start()
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


def files_with_mark(folder: Path) -> set[str]:
    """Files below the folder, except the write-ahead log, that contain the marked bytes."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "pg_wal" not in path.parts and MARK in path.read_bytes()
    }


def test_erased_bytes_are_gone_from_disk(up: UpProcess, recorder: Recorder) -> None:
    mark = MARK.decode()
    for number, answer in enumerate((200, 500)):
        path = f"/{number}"
        recorder.script(path, lambda _, status=answer: web.Response(text=f"you sent {mark}", status=status))
        wanted = {
            "event_type": "person.changed",
            "callback_url": recorder.url + path,
            "ordered": bool(number),
            "verified": True,
            "verified_reason": "a receiver of this test",
        }
        up.api.good("POST", "/v1/subscriptions", wanted)
    attribute = {"name": "extracted", "pointer": "/name", "kind": "string"}
    up.api.good("PUT", "/v1/event-types/person.changed", {"attributes": [attribute]})
    body = {
        "event_type": "person.changed",
        "payload": {"name": mark},
        "ordering_key": mark,
        "attributes": {"name": mark},
    }
    sent = up.api.post_event(json.dumps(body).encode(), ("idempotency-key", mark))
    event_id = sent.json()["id"]

    def attempts() -> list[str]:
        sagas = up.api.good("GET", f"/v1/events/{event_id}")["sagas"]
        return sorted(saga["status"] for saga in sagas)

    wait_until(lambda: attempts() == ["Completed", "PendingRetry"], "one delivered, one waits")
    event = up.api.good("GET", f"/v1/events/{event_id}")
    assert (event["attributes"], event["extracted_attributes"]) == ({"name": mark}, {"extracted": mark})
    url = EmbeddedPostgres(up.folder).start()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        assert any(
            name.startswith("postgres/base/") for name in files_with_mark(up.folder)
        )  # or the search is blind
        erasure = up.api.good("POST", "/v1/erasures", {"event_id": event_id, "reason": "request 1"})
        wait_until(
            lambda: up.api.good("GET", f"/v1/erasures/{erasure['id']}")["status"] == "Completed",
            "it is erased",
        )
        assert attempts() == ["Completed", "DeadLettered"]
        assert up.api.good("GET", f"/v1/events/{event_id}")["payload"] is None
        connection.execute(f"VACUUM FULL {TABLES}".encode())
        connection.execute("ANALYZE")
        connection.execute("CHECKPOINT")
        wait_until(lambda: files_with_mark(up.folder) == set(), "the bytes are gone", 30)
