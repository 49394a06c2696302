"""The clock of the database is set, back and ahead, at each place where times are compared."""

import itertools
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, connect_as
from hooksaga.core.endpoint_health import MIN_FAILURES, HealthPolicy
from hooksaga.core.errors import Conflict
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import SagaStatus
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations import bulk_steps, subscriptions, work_state
from hooksaga.operations.api_keys import create_api_key, generate_api_key, hash_api_key
from hooksaga.operations.attempt_log import AttemptFilter
from hooksaga.operations.audit import audit
from hooksaga.operations.console_sign_ins import create_sign_in, end_sessions, session_has_ended, use_sign_in
from hooksaga.operations.explain import explain_event
from hooksaga.operations.follow_attempts import FollowCursor, follow_attempts
from hooksaga.operations.prune import Pruning, prune_batch
from hooksaga.operations.subscription_health import read_missed
from hooksaga.operations.watch_endpoints import count_attempts, disable_gone, judge_failing
from hooksaga.stages import clean_leases, deliver, undispatched
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.route_events import route_events
from tests.api.running_system import wait_until
from tests.database import orchestrate
from tests.database.bulk_rows import backfill_of, started, step_until_nothing_is_left
from tests.database.seed import POLICY, WORKER, Seed, outcome
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.load import Producer, check_arrivals, subscribe, together
from tests.faults.moved_clock import MovedClock, server_with_moved_clock
from tests.faults.promises import Promise

pytestmark = [pytest.mark.faults, pytest.mark.database]

STEP = 600.0
DAY = 86_400.0
_numbers = itertools.count(1)

back_and_ahead = pytest.mark.parametrize("step", [-STEP, STEP], ids=["back", "ahead"])


@pytest.fixture(scope="module")
def server() -> Iterator[MovedClock]:
    with server_with_moved_clock() as clock:
        yield clock


@pytest.fixture
def clock(server: MovedClock) -> Iterator[MovedClock]:
    yield server
    server.set(0)


@pytest.fixture
async def seed(clock: MovedClock) -> AsyncIterator[Seed]:
    """On a migrated database of the test's own."""
    name = f"test_{next(_numbers)}"
    maintenance = make_conninfo(clock.url, dbname="postgres")
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE hooksaga").format(sql.Identifier(name)))
    owner = await connect_as(DatabaseAddress(make_conninfo(clock.url, dbname=name)), Role.OWNER)
    yield Seed(owner)
    await owner.close()


@pytest.fixture
async def monitor(seed: Seed) -> AsyncIterator[Connection]:
    """Logged in as the health monitor, on the same database."""
    place = make_conninfo(seed.connection.info.dsn, dbname=seed.connection.info.dbname)
    connection = await connect_as(DatabaseAddress(place), Role.HEALTH_MONITOR)
    yield connection
    await connection.close()


async def receivers(seed: Seed, event_id: int) -> list[int]:
    """The subscriptions with a saga of the event. `explain` and the audit agree with it."""
    webhook_id = await seed.value("SELECT webhook_id FROM events WHERE id = %s", [event_id])
    routing = await explain_event(seed.connection, webhook_id, tenant_id=None, default_attempt_limit=5)
    found = [one.subscription_id for one in routing.decisions if one.saga]
    assert [one.subscription_id for one in routing.decisions if one.matched] == found
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []
    return found


@pytest.mark.guarantee(
    Promise.CLOCK, "between the activation of a subscription and an event", "the event is routed to it"
)
@back_and_ahead
async def test_an_event_after_the_activation_is_routed(seed: Seed, clock: MovedClock, step: float) -> None:
    subscription_id = await seed.subscription("a")
    clock.set(step)
    event_id = await seed.event("a")
    await route_events(seed.connection)
    assert await receivers(seed, event_id) == [subscription_id]


@pytest.mark.guarantee(
    Promise.CLOCK, "between an event and the activation of a subscription", "the event is not routed to it"
)
@back_and_ahead
async def test_an_event_before_the_activation_is_not_routed(
    seed: Seed, clock: MovedClock, step: float
) -> None:
    event_id = await seed.event("a")
    clock.set(step)
    await seed.subscription("a")
    await route_events(seed.connection)
    assert await receivers(seed, event_id) == []


@pytest.mark.guarantee(
    Promise.CLOCK,
    "after a subscription was switched off",
    "what it misses is counted, and the backfill that is named brings it",
)
@back_and_ahead
async def test_what_is_missed_is_counted_and_brought(
    seed: Seed, monitor: Connection, clock: MovedClock, step: float
) -> None:
    subscription_id = await seed.subscription("a")
    await seed.finish(await seed.job(subscription_id), "http_410")
    await disable_gone(monitor, HealthPolicy())
    clock.set(step)
    events = await seed.accept(*[EventDraft("a", "{}")] * 3)
    await route_events(seed.connection)
    missed = await read_missed(seed.connection, subscription_id, tenant_id=None)
    assert missed is not None
    assert (missed.events, missed.at_least) == (3, False)
    await seed.connection.execute("UPDATE subscriptions SET active = true")
    await started(seed.connection, backfill_of(subscription_id, since=missed.since))
    assert await step_until_nothing_is_left(seed.connection) == 3
    brought = await seed.rows(
        "SELECT event_id FROM webhook_delivery_sagas WHERE bulk_operation_id IS NOT NULL"
    )
    assert sorted(row["event_id"] for row in brought) == [event.id for event in events]
    assert [finding for finding in await audit(seed.connection) if finding.rows] == []


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead past a lease",
    "another worker takes the job, and the first one's result is dropped: sent twice",
)
async def test_leases_end_early(seed: Seed, clock: MovedClock) -> None:
    (first,) = await seed.claim(await seed.job())
    clock.set(STEP)
    assert len(await clean_leases.clean_leases(seed.connection, max_lost_leases=5)) == 1
    (second,) = await seed.claim(first.id, worker_id="other")
    late = AttemptResult(first, outcome("http_503"))
    assert await deliver.record_results(seed.connection, [late], worker_id=WORKER) == set()
    assert await deliver.record_results(
        seed.connection, [AttemptResult(second, outcome())], worker_id="other"
    ) == {second.id}


@pytest.mark.guarantee(
    Promise.CLOCK, "back under the lease of a worker that died", "its job is free later by the step"
)
async def test_leases_of_the_dead_last_longer(seed: Seed, clock: MovedClock) -> None:
    await seed.claim(await seed.job(), lease_seconds=1)
    clock.set(-STEP)
    assert await clean_leases.clean_leases(seed.connection, max_lost_leases=5) == []
    clock.set(2)
    assert len(await clean_leases.clean_leases(seed.connection, max_lost_leases=5)) == 1


@pytest.mark.guarantee(Promise.CLOCK, "back under a retry that waits", "it is made later by the step")
async def test_retries_wait_longer(seed: Seed, clock: MovedClock) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    clock.set(60 - STEP)
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    clock.set(60)
    assert [move.saga_id for move in await orchestrate.start_all(seed.connection, POLICY)] == [saga_id]


@pytest.mark.guarantee(Promise.CLOCK, "ahead past a retry that waits", "it is made at once")
async def test_retries_come_early(seed: Seed, clock: MovedClock) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    clock.set(STEP)
    assert [move.saga_id for move in await orchestrate.start_all(seed.connection, POLICY)] == [saga_id]


@pytest.mark.guarantee(
    Promise.CLOCK, "back under a delivery that was routed and not begun", "it begins later by the step"
)
async def test_what_was_routed_waits_longer(seed: Seed, clock: MovedClock) -> None:
    saga_id = await seed.saga()
    clock.set(-STEP)
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    clock.set(1)
    assert [move.saga_id for move in await orchestrate.start_all(seed.connection, POLICY)] == [saga_id]


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead under deliveries that wait",
    "the audit calls them overdue until they are begun",
)
async def test_the_audit_goes_by_the_clock(seed: Seed, clock: MovedClock) -> None:
    await seed.saga()
    clock.set(STEP)
    assert [one.invariant for one in await audit(seed.connection) if one.rows] == ["saga_waits_too_long"]
    await orchestrate.start_all(seed.connection, POLICY)
    assert [one.invariant for one in await audit(seed.connection) if one.rows] == []


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead while work begins, and right again",
    "the audit judges what waits as if work had always been going on",
)
async def test_a_beginning_that_lies_ahead_hides_nothing_from_the_audit(
    seed: Seed, clock: MovedClock
) -> None:
    await work_state.end_work(seed.connection)
    clock.set(DAY)
    await work_state.begin_work(seed.connection)
    clock.set(-STEP)
    await seed.saga()
    await seed.claim(await seed.job(), lease_seconds=1)
    clock.set(0)
    assert {one.invariant for one in await audit(seed.connection) if one.rows} == {
        "saga_waits_too_long",
        "lease_over_too_long",
    }


@pytest.mark.guarantee(
    Promise.CLOCK, "during a requeue or a backfill at a rate", "back: it rests for the step; ahead: no burst"
)
@back_and_ahead
async def test_the_pace_of_a_bulk_operation(seed: Seed, clock: MovedClock, step: float) -> None:
    await seed.accept(*[EventDraft("a", "{}")] * 20)
    await route_events(seed.connection)
    subscription_id = await seed.subscription("a")
    since = datetime.now(UTC) - timedelta(days=1)
    await started(seed.connection, backfill_of(subscription_id, since=since, rate=1))
    first = await bulk_steps.step_bulk_operation(seed.connection, horizon_seconds=3)
    assert 3 <= len(first.saga_ids) <= 4
    clock.set(step)
    then = await bulk_steps.step_bulk_operation(seed.connection, horizon_seconds=3)
    assert len(then.saga_ids) == 0 if step < 0 else 3 <= len(then.saga_ids) <= 4
    clock.set(4)
    later = await bulk_steps.step_bulk_operation(seed.connection, horizon_seconds=3)
    assert len(later.saga_ids) == (0 if step > 0 else 4) or step < 0 < len(later.saga_ids) <= 5


@pytest.mark.guarantee(
    Promise.CLOCK,
    "during the time in which an old secret signs too",
    "it signs until that time, by the clock",
)
async def test_secrets_end_by_the_clock(seed: Seed, clock: MovedClock) -> None:
    subscription_id = await seed.subscription()
    sealed = seed.box.seal(seed.secrets[subscription_id])
    await subscriptions.rotate_secret(
        seed.connection, subscription_id, tenant_id=None, sealed_secret=sealed, overlap_seconds=300
    )

    async def signing() -> int:
        (claimed,) = await seed.claim(await seed.job(subscription_id))
        assert claimed.secrets is not None
        return len(claimed.secrets)

    counts: list[int] = []
    for seconds in (0, -STEP, STEP, 0):
        clock.set(seconds)
        counts.append(await signing())
    assert counts == [2, 2, 1, 2]


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead past the time of a sign-in link",
    "the link is refused; back: it is valid for longer",
)
@back_and_ahead
async def test_sign_in_links_end_by_the_clock(seed: Seed, clock: MovedClock, step: float) -> None:
    key = generate_api_key()
    await create_api_key(seed.connection, key, name="console")
    token = await create_sign_in(seed.connection, hash_api_key(key))
    clock.set(10 * step)
    used = await use_sign_in(seed.connection, token)
    assert used == (hash_api_key(key) if step < 0 else None)


@pytest.mark.guarantee(
    Promise.CLOCK,
    "far ahead for a moment, in which somebody signs out",
    "no session is valid again that was ended",
)
async def test_ended_sessions_stay_ended(seed: Seed, clock: MovedClock) -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    await end_sessions(seed.connection, ["mine"], valid_until=in_an_hour)
    clock.set(365 * DAY)
    await end_sessions(seed.connection, ["another's"], valid_until=in_an_hour)
    clock.set(0)
    assert await session_has_ended(seed.connection, "mine")


@pytest.mark.guarantee(
    Promise.CLOCK,
    "after a message to a worker was lost (SQS mode)",
    "back: it is sent again later by the step; ahead: at once, and the job is done once",
)
@back_and_ahead
async def test_a_lost_message_is_sent_again(seed: Seed, clock: MovedClock, step: float) -> None:
    job_id = await seed.job()
    await undispatched.mark_dispatched(seed.connection, [job_id])
    clock.set(2 * step)
    found = await undispatched.find_undispatched_jobs(seed.connection, redispatch_seconds=900)
    assert [one.job_id for one in found] == ([] if step < 0 else [job_id])
    clock.set(901)
    found = await undispatched.find_undispatched_jobs(seed.connection, redispatch_seconds=900)
    assert [one.job_id for one in found] == [job_id]
    assert len(await seed.claim(job_id)) == 1
    assert await seed.claim(job_id) == []


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead by more than the age that is pruned",
    "finished deliveries go that are younger, open ones never; a backfill of that time is refused",
)
async def test_pruning_goes_by_the_clock(seed: Seed, clock: MovedClock) -> None:
    subscription_id = await seed.subscription()
    await seed.saga(SagaStatus.COMPLETED, subscription_id)
    kept = await seed.saga(SagaStatus.PENDING_RETRY, subscription_id)
    month = Pruning(timedelta(days=30), False)
    clock.set(-40 * DAY)
    assert (await prune_batch(seed.connection, month)).sagas == 0
    clock.set(40 * DAY)
    assert (await prune_batch(seed.connection, month)).sagas == 1
    clock.set(0)
    assert await seed.rows("SELECT id FROM webhook_delivery_sagas") == [{"id": kept}]
    with pytest.raises(Conflict, match="may have been deleted"):
        await started(seed.connection, backfill_of(subscription_id, since=datetime.now(UTC)))


async def fail(seed: Seed, subscription_id: int, times: int) -> None:
    for _ in range(times):
        await seed.finish(await seed.job(subscription_id), "http_503")


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead by days under an endpoint that fails",
    "switched off early, without a warning, if it fails again meanwhile",
)
async def test_a_failing_endpoint_is_judged_by_the_clock(
    seed: Seed, monitor: Connection, clock: MovedClock
) -> None:
    policy = HealthPolicy()
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, MIN_FAILURES)
    await count_attempts(monitor, settle_seconds=0)
    clock.set(6 * DAY)
    assert (await judge_failing(monitor, policy)).verdicts == []
    await fail(seed, subscription_id, 1)
    await count_attempts(monitor, settle_seconds=0)
    steps = [len((await judge_failing(monitor, policy)).verdicts) for _ in range(4)]
    assert steps == [1, 0, 0, 0]
    assert await seed.value("SELECT active FROM subscriptions") is False


@pytest.mark.guarantee(
    Promise.CLOCK,
    "back under the health of endpoints",
    "attempts that end before the clock has caught up are not counted; a 410 switches off all the same",
)
async def test_health_is_blind_until_the_clock_has_caught_up(
    seed: Seed, monitor: Connection, clock: MovedClock
) -> None:
    subscription_id = await seed.subscription()
    await fail(seed, subscription_id, 1)
    assert await count_attempts(monitor, settle_seconds=0) == 1
    clock.set(-STEP)
    await fail(seed, subscription_id, 3)
    assert await count_attempts(monitor, settle_seconds=0) == 0
    clock.set(1)
    await fail(seed, subscription_id, 1)
    assert await count_attempts(monitor, settle_seconds=0) == 1
    gone = await seed.subscription()
    await seed.finish(await seed.job(gone), "http_410")
    clock.set(-STEP)
    assert len((await disable_gone(monitor, HealthPolicy())).verdicts) == 1


@pytest.mark.guarantee(Promise.CLOCK, "under somebody who follows the attempts", "none is left out")
@back_and_ahead
async def test_who_follows_sees_every_attempt(seed: Seed, clock: MovedClock, step: float) -> None:
    cursor: FollowCursor | None = None
    seen: set[int] = set()

    async def poll() -> None:
        nonlocal cursor
        more = True
        while more:
            followed = await follow_attempts(seed.connection, AttemptFilter(), cursor)
            cursor, more = followed.cursor, followed.more
            seen.update(one.id for one in followed.items)

    await poll()
    subscription_id = await seed.subscription()
    made: list[int] = []
    for seconds in (0, step, step, 0, 0):
        clock.set(seconds)
        made.append(await seed.job(subscription_id))
        await seed.finish(made[-1])
        await poll()
    assert seen == set(made)


@pytest.mark.guarantee(
    Promise.CLOCK,
    "under the signature of a request",
    "it is dated by that clock: receivers refuse it outside their tolerance, and it is retried",
)
@back_and_ahead
async def test_signatures_are_dated_by_the_clock(seed: Seed, clock: MovedClock, step: float) -> None:
    clock.set(step)
    (claimed,) = await seed.claim(await seed.job())
    apart: Any = claimed.leased_at - datetime.now(UTC)
    assert abs(apart.total_seconds() - step) < 60


PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "database.md"


def statements_of_the_page() -> list[str]:
    """Return the statements that the page recommends after the clock was wrong."""
    section = PAGE.read_text(encoding="utf-8").split("## After the clock was wrong")[1]
    return [one.strip() for one in section.split("```")[1].removeprefix("sql").split(";") if one.strip()]


@pytest.mark.guarantee(
    Promise.CLOCK,
    "ahead by a year for a moment, in which everything was planned",
    "everything goes on at once when the operator ends the waits",
)
async def test_what_was_planned_for_next_year_goes_on(
    seed: Seed, monitor: Connection, clock: MovedClock
) -> None:
    clock.set(365 * DAY)
    waiting = [await seed.saga(), await seed.saga(SagaStatus.PENDING_RETRY)]
    held, sent = await seed.job(), await seed.job()
    await seed.claim(held)
    await undispatched.mark_dispatched(seed.connection, [sent])
    await count_attempts(monitor, settle_seconds=0)
    clock.set(60)
    assert await orchestrate.start_all(seed.connection, POLICY) == []
    statements = statements_of_the_page()
    assert len(statements) == 5
    for statement in statements:
        await seed.connection.execute(statement.encode())
    moved = [
        *await orchestrate.start_all(seed.connection, POLICY),
        *await orchestrate.start_all(seed.connection, POLICY),
    ]
    assert [move.saga_id for move in moved] == waiting
    clock.set(120)
    found = await undispatched.find_undispatched_jobs(seed.connection, redispatch_seconds=900)
    assert {sent, held} <= {one.job_id for one in found}
    assert {one.id for one in await seed.claim(held, sent)} == {held, sent}
    await fail(seed, await seed.subscription(), 1)
    assert await count_attempts(monitor, settle_seconds=0) == 1


UNDER_LOAD = 200.0
"""Less than the five minutes that receivers tolerate between a signature and their own clock."""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="hooksaga-clock-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.long
@pytest.mark.guarantee(
    Promise.CLOCK, "under load: back for a while, right again, and ahead", "all that was accepted arrives"
)
@pytest.mark.e2e
@pytest.mark.slow
def test_a_clock_that_is_set_under_load_loses_nothing(clock: MovedClock, folder: Path) -> None:
    certificates = ensure_certificates(folder)
    recorder = Recorder(certificates)
    settings = {"HOOKSAGA_DATABASE_URL": clock.url, "HOOKSAGA_MAX_RETRY_LIMIT": "3"}
    up = UpProcess(folder, certificates, HOOKSAGA_LOG_LEVEL="WARNING", **settings)
    stopping = threading.Event()
    try:
        up.start()
        paths = subscribe(up, recorder, "clock")
        producers = [
            Producer(up, number, stopping, event_type="clock", rest_seconds=0.05) for number in range(2)
        ]
        for producer in producers:
            producer.start()
        for seconds in (0, -UNDER_LOAD, 0, UNDER_LOAD):
            clock.set(seconds)
            before = len(together(producers).accepted)
            wait_until(lambda: len(together(producers).accepted) > before + 20, "it accepts events", 60)  # noqa: B023
        stopping.set()
        for producer in producers:
            producer.join(60)
        told = together(producers)
        assert told.faults == []
        with psycopg.connect(clock.url, autocommit=True) as connection:
            wait_until(lambda: connection.execute(OPEN_WORK).fetchone() == (0,), "every saga has ended", 60)
        check_arrivals(recorder, paths, told.accepted)
        assert findings(clock.url) == []
    finally:
        stopping.set()
        if up.is_alive:
            up.kill()
        recorder.close()


OPEN_WORK = """
    SELECT (SELECT count(*) FROM routing_outbox)
           + (SELECT count(*) FROM webhook_delivery_sagas WHERE status NOT IN ('Completed', 'DeadLettered'))"""
