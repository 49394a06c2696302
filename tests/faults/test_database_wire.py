"""The connection to the database breaks at every write and every COMMIT: before it arrives, and before it is answered.

The process lives on and is not restarted. Whoever was told to repeat a call repeats it; nothing is lost or doubled.
"""

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import new_name
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.promises import IN_FULL, Promise, RecordProperty, arrivals, tried
from tests.faults.story import arrivals as arrived
from tests.faults.story import open_work, tell_story
from tests.faults.stubborn import Stubborn
from tests.faults.wire import SOCKET, Loss, Wire

pytestmark = [pytest.mark.faults, pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

SHORT_FORM = (
    "accept_events.insert_events",
    "route_events.route_outbox",
    "deliver.record_results",
    "orchestrate.apply_results",
)
"""What `make test` tries; `make faults` tries every write that the story makes."""

AT_THE_START = ("api_keys", "clean_leases", "migrate", "session", "reseal_secrets", "work_state")
"""Whose statements a process sends only when it starts, or in its own time: no story makes them come."""


def comes_by_itself(point: str) -> bool:
    """Whether the point is one of AT_THE_START, or ends a transaction that only looked: how many look is chance."""
    statement = point.removeprefix("COMMIT of ")
    return statement.startswith(AT_THE_START) or (statement != point and ".lock_" in statement)


@pytest.fixture
def wire(folder: Path) -> Iterator[Wire]:
    EmbeddedPostgres(folder).start()
    wire = Wire(folder / "wire", folder / "postgres" / SOCKET)
    yield wire
    wire.close()


@pytest.fixture
def user(folder: Path, wire: Wire) -> Iterator[Stubborn]:
    certificates = ensure_certificates(folder)
    recorder = Recorder(certificates)
    up = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=wire.url,
        HOOKSAGA_MAX_RETRY_LIMIT="3",
        HOOKSAGA_LEASE_SECONDS="35",
        HOOKSAGA_LOG_LEVEL="WARNING",
    )
    yield Stubborn(up, recorder)
    up.close()
    recorder.close()


@pytest.mark.guarantees(Promise.DATABASE, *(f"`*` {loss}" for loss in Loss))
def test_a_connection_that_breaks_at_any_write_loses_nothing(
    user: Stubborn, wire: Wire, record_property: RecordProperty
) -> None:
    user.up.start()
    undisturbed = tell_story(user)
    points = [name for name in wire.seen() if not comes_by_itself(name)]
    assert set(SHORT_FORM) <= set(points), sorted(set(SHORT_FORM) - set(points))
    for point, loss in product(points if IN_FULL else SHORT_FORM, Loss):
        wire.arm(point, loss)
        now = list[int]()
        for _ in range(5):  # which of two statements claims is chance
            now = tell_story(user)
            extra = [one - was for was, one in zip(undisturbed, now, strict=True)]
            assert all(0 <= more <= 1 for more in extra), (point, loss, now)
            if wire.has_struck:
                break
        assert wire.has_struck, (point, loss)
        tried(record_property, Promise.DATABASE, f"`{point}` {loss}", arrivals(now, undisturbed))
    user.until(lambda: not open_work(user), "all work has ended")
    assert user.restarts == 0
    assert findings(user.up.server.start()) == []


@pytest.mark.guarantees(Promise.DATABASE, "the answer to a claim lost: its leases last 35 s")
def test_a_claim_whose_answer_is_lost_is_made_again_at_once(
    user: Stubborn, wire: Wire, record_property: RecordProperty
) -> None:
    """The worker lives, so nobody else ends its leases, and it does not know what it has leased."""
    user.up.start()
    kind = new_name("claim")
    fine, path = user.subscribe(kind, "/ok")
    wire.arm("deliver.claim_jobs", Loss.UNANSWERED)
    events, seconds = list[str](), 0.0
    while not wire.has_struck:  # a lane that looks at that moment claims by another statement
        began = time.monotonic()
        events.append(user.post(kind, new_name("key"), b"{}"))
        user.saga_in("Completed", events[-1], fine)
        seconds = time.monotonic() - began
    assert seconds < 15
    assert {arrived(user, path, event) for event in events} == {1}
    fault = "the answer to a claim lost: its leases last 35 s"
    tried(record_property, Promise.DATABASE, fault, f"arrived once, after {seconds:.1f} s")
