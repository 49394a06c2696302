"""What an event that comes alone costs: a round trip to the database for each statement (decision 82)."""

import re
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from hooksaga.local.tls import Certificates
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.database_server import DatabaseServer

EVENTS = 40
STATEMENTS = 8
"""Accept, route, read the flow, start, claim, record, read the result, apply."""

BY_TIME = 6
"""Statements a second that no event causes: looks for forgotten work, and the check of the API key."""

LOGGED = (
    "ALTER SYSTEM SET log_min_duration_statement = 0",
    "ALTER SYSTEM SET log_line_prefix = '%u '",
    "SELECT pg_reload_conf()",
)
STATEMENT = re.compile(r"^(\w+) LOG:  duration: \S+ ms  (?:execute [^:]*|statement): ", re.MULTILINE)


def test_a_lone_event_takes_eight_statements(
    folder: Path, certificates: Certificates, recorder: Recorder
) -> None:
    with closing(UpProcess(folder, certificates)) as up:
        up.start()
        by_role, seconds = _deliver(up, recorder)
    assert by_role["saga_orchestrator"] > 3 * EVENTS
    assert by_role.total() <= STATEMENTS * EVENTS + BY_TIME * seconds, by_role


def _deliver(up: UpProcess, recorder: Recorder) -> tuple[Counter[str], float]:
    """The statements of so many events, one after the other, by role, and how long they took."""
    kind, path = new_name("lone"), "/ok/lone"
    created = up.api.good(
        "POST", "/v1/subscriptions", {"event_type": kind, "callback_url": recorder.url + path}
    )
    recorder.receiver.add_secret(path, created["secret"])
    up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")

    def deliver_one() -> None:
        event = up.api.good("POST", "/v1/events", {"event_type": kind, "payload": {}})["id"]
        query = (
            "SELECT FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id"
            " WHERE e.webhook_id = %s::uuid AND s.status = 'Completed'"
        )
        wait_until(lambda: up.rows(query, [event.removeprefix("evt_")]), "it is delivered")

    for _ in range(3):  # every statement is prepared
        deliver_one()
    server = DatabaseServer(up.folder / "postgres")
    server.run(*LOGGED)
    began, log = time.monotonic(), server.log_size()
    for _ in range(EVENTS):
        deliver_one()
    seconds = time.monotonic() - began
    by_role = Counter(STATEMENT.findall(server.log_since(log)))
    del by_role["postgres"]  # asked by this test
    return by_role, seconds
