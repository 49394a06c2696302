"""A system with deliveries in every state, for a backup that is made meanwhile."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.load import Producer
from tests.local.restored import run

EVENT_TYPE = "dumped"
KINDS = ("/ok", "/slow/1500", "/flaky/1")
"""What succeeds, what is always under way, and what waits for its second attempt."""

IN_FLIGHT = """
    SELECT count(*) FILTER (WHERE j.status = 'Leased') > 0
           AND count(*) FILTER (WHERE s.status = 'PendingRetry') > 0 AS both
      FROM webhook_delivery_sagas s LEFT JOIN webhook_delivery_jobs j ON j.saga_id = s.id"""


def subscribe(up: UpProcess, recorder: Recorder) -> None:
    for kind in KINDS:
        path = f"{kind}/{EVENT_TYPE}"
        wanted = {"event_type": EVENT_TYPE, "callback_url": recorder.url + path}
        created = up.api.good("POST", "/v1/subscriptions", wanted)
        recorder.receiver.add_secret(path, created["secret"])
        up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")


@contextmanager
def load_on(up: UpProcess) -> Iterator[list[Producer]]:
    """Producers, from the moment when attempts are under way and retries wait."""
    stopping = threading.Event()
    producers = [
        Producer(up, number, stopping, event_type=EVENT_TYPE, rest_seconds=0.02) for number in range(3)
    ]
    for producer in producers:
        producer.start()
    try:
        wait_until(lambda: up.rows(IN_FLIGHT)[0]["both"], "attempts are under way and retries wait", 60)
        yield producers
    finally:
        stopping.set()
        for producer in producers:
            producer.join(60)


def audited(url: str) -> tuple[bool, list[str]]:
    """Whether nothing is at work, and which invariants are broken."""
    found: dict[str, Any] = json.loads(run(url, "audit", "--json").stdout)
    return found["at_rest"], [one["invariant"] for one in found["invariants"] if not one["ok"]]
