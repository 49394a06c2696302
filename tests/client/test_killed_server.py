"""The server dies by SIGKILL after it has accepted an event, before the producer hears of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hooksaga.client import RetryPolicy, SentEvent
from hooksaga.local.tls import ensure_certificates
from tests.client.conftest import MakeClient
from tests.client.lossy_proxy import LossyProxy
from tests.e2e.up_process import KEY, UpProcess

pytestmark = [pytest.mark.e2e, pytest.mark.faults, pytest.mark.slow]

PATIENT = RetryPolicy(attempts=1000, first_wait_seconds=0.1, longest_wait_seconds=0.2, total_seconds=90)


@pytest.fixture(scope="module")
def up(folder: Path) -> Iterator[UpProcess]:
    process = UpProcess(folder, ensure_certificates(folder))
    yield process
    process.close()


def test_one_event_comes_of_a_call_whose_server_was_killed(up: UpProcess, make_client: MakeClient) -> None:
    if not up.is_alive:
        up.start()
    before = len(up.rows("SELECT FROM events"))
    killed, told = threading.Event(), list[SentEvent]()

    def kill() -> None:
        up.kill()
        killed.set()

    with LossyProxy(up.port, losses=1, lost=kill) as proxy:
        client = make_client(proxy.url, KEY, retry=PATIENT)
        producer = threading.Thread(target=lambda: told.append(client.send("killed", {"a": 1})))
        producer.start()
        assert killed.wait(60)
        up.start()
        producer.join(60)
        client.close()
    (sent,) = told
    assert sent.duplicate
    ids = [
        row["id"]
        for row in up.rows(
            "SELECT 'evt_' || replace(webhook_id::text, '-', '') AS id FROM events ORDER BY id"
        )
    ]
    assert ids[before:] == [sent.id]
