"""The attempt log in the database: what is kept, who may change it, how lists and followers go over it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any, LiteralString

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.attempts import MASK, Outcome, StatusClass
from hooksaga.core.errors import NotFound
from hooksaga.core.saga import RetryPolicy, SagaStatus
from hooksaga.operations import attempt_log, follow_attempts
from hooksaga.operations.attempt_log import AttemptFilter, AttemptPage, LoggedAttempt
from hooksaga.operations.follow_attempts import FollowCursor
from hooksaga.operations.subscription_stats import Backlog, LastError, Latency, subscription_stats
from hooksaga.stages import deliver
from hooksaga.stages.job_rows import AttemptResult
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.seed import POLICY, WORKER, Seed, outcome


async def record(connection: Connection, seed: Seed, job_id: int, names: str | None = "") -> None:
    (claimed,) = await seed.claim(job_id)
    result = AttemptResult(claimed, outcome(), names)
    assert await deliver.record_results(connection, [result], worker_id=WORKER) == {job_id}


async def kept(seed: Seed, job_id: int) -> tuple[Any, ...]:
    row = await seed.row(
        "SELECT max_attempts, own_header_names FROM webhook_delivery_jobs WHERE id = %s",
        [job_id],
    )
    return tuple(row.values())


async def test_a_job_knows_the_limit_of_its_time(connect: Connect, seed: Seed) -> None:
    orchestrator = await connect(Role.ORCHESTRATOR)
    own = await seed.saga(subscription_id=await seed.subscription(max_retry_limit=7))
    default = await seed.saga()
    moved = await orchestrate.start_attempts_of(orchestrator, RetryPolicy(max_retry_limit=3), [own, default])
    limits = {saga.saga_id: (await kept(seed, saga.job_id or 0))[0] for saga in moved}
    assert limits == {own: 7, default: 3}


@pytest.mark.parametrize("names", ["authorization x-shop", "", None])
async def test_a_worker_keeps_the_names_of_headers(connect: Connect, seed: Seed, names: str | None) -> None:
    worker, job_id = await connect(Role.DELIVERY), await seed.job()
    await record(worker, seed, job_id, names)
    assert (await kept(seed, job_id))[1] == names
    sent = (await attempt_log.show_attempt(seed.connection, job_id, tenant_id=None)).request_headers
    assert (sent is None) == (names is None)
    assert {name for name, value in (sent or {}).items() if value == MASK} == (
        set() if names is None else {"webhook-signature", *names.split()}
    )


class AnsweringSender(HttpSender):
    """Sends nothing; the scripted peer alone decides the outcome."""

    def __init__(self, resolved_ip: str | None) -> None:
        super().__init__(AddressPolicy())
        self._ip = resolved_ip

    async def send(self, request: OutgoingRequest) -> SendOutcome:
        return outcome(resolved_ip=self._ip)


@pytest.mark.parametrize(("resolved_ip", "names"), [("192.0.2.1", "x-key"), (None, None)])
async def test_only_a_request_that_went_somewhere_has_headers(
    seed: Seed, resolved_ip: str | None, names: str | None
) -> None:
    job_id = await seed.job(await seed.subscription(headers={"x-key": "hush"}))
    (claimed,) = await seed.claim(job_id)
    result = await deliver.attempt(AnsweringSender(resolved_ip), seed.box, claimed, timeout_seconds=1)
    assert result.own_header_names == names


async def test_the_limit_never_changes(seed: Seed) -> None:
    job_id = await seed.job()
    with pytest.raises(errors.DatabaseError) as refused:
        await seed.connection.execute(
            "UPDATE webhook_delivery_jobs SET max_attempts = 9 WHERE id = %s", [job_id]
        )
    assert refused.value.sqlstate == "HS001"


async def finish_all(seed: Seed, subscription_id: int, words: list[str | None]) -> list[int]:
    """A finished attempt per word, in their order; None is a success."""
    job_ids = await seed.jobs(subscription_id, len(words))
    for job_id, word in zip(job_ids, words, strict=True):
        changes = {"response_status": int(word[5:])} if word and word.startswith("http_") else {}
        changes |= {"response_status": None} if word and not changes else {}
        await seed.finish(job_id, word, **changes)
    return job_ids


def ids(page: AttemptPage) -> list[int]:
    return [item.id for item in page.items]


WORDS = ["http_503", None, "timeout_total", "http_404", None, "http_302", "http_503"]


@pytest.mark.parametrize(
    ("wanted", "positions"),
    [
        (AttemptFilter(), [6, 5, 4, 3, 2, 1, 0]),
        (AttemptFilter(outcome=Outcome.COMPLETED), [4, 1]),
        (AttemptFilter(outcome=Outcome.FAILED), [6, 5, 3, 2, 0]),
        (AttemptFilter(status_class=StatusClass.SUCCESS), [4, 1]),
        (AttemptFilter(status_class=StatusClass.REDIRECTION), [5]),
        (AttemptFilter(status_class=StatusClass.CLIENT_ERROR), [3]),
        (AttemptFilter(status_class=StatusClass.SERVER_ERROR), [6, 0]),
        (AttemptFilter(status_class=StatusClass.NONE), [2]),
        (AttemptFilter(error_code="http_503"), [6, 0]),
        (AttemptFilter(error_code="http_503", outcome=Outcome.COMPLETED), []),
        (AttemptFilter(error_code="http_404", status_class=StatusClass.SERVER_ERROR), []),
        (AttemptFilter(event_type="of.these"), [6, 5, 4, 3, 2, 1, 0]),
        (AttemptFilter(event_type="of.others"), []),
        (AttemptFilter(tenant_id="nobody"), []),
    ],
)
@pytest.mark.parametrize("of_one_subscription", [False, True])
async def test_each_filter_alone_and_with_a_subscription(
    connect: Connect, seed: Seed, wanted: AttemptFilter, positions: list[int], of_one_subscription: bool
) -> None:
    """Whatever index the query goes along, it finds the same."""
    subscription_id = await seed.subscription("of.these")
    made = await finish_all(seed, subscription_id, WORDS)
    if of_one_subscription:
        await finish_all(seed, await seed.subscription("of.these", tenant_id="b"), WORDS)
        wanted = replace(wanted, subscription_id=subscription_id)
    admin = await connect(Role.ADMIN)
    expected = [made[position] for position in positions]
    assert ids(await attempt_log.list_attempts(admin, wanted)) == expected
    assert ids(await attempt_log.list_attempts(admin, wanted, limit=2)) == expected[:2]


async def test_times_bound_a_list(seed: Seed) -> None:
    made = await finish_all(seed, await seed.subscription(), [None] * 4)
    times = [
        one.finished_at for one in (await attempt_log.list_attempts(seed.connection, AttemptFilter())).items
    ]
    between = AttemptFilter(finished_after=times[2], finished_before=times[0])
    assert ids(await attempt_log.list_attempts(seed.connection, between)) == [made[2], made[1]]
    first = await attempt_log.list_attempts(seed.connection, between, limit=1)
    rest = await attempt_log.list_attempts(seed.connection, between, before=first.following)
    assert (ids(first), ids(rest)) == ([made[2]], [made[1]])


async def test_attempts_that_ended_at_one_moment_are_paged_by_their_ids(seed: Seed) -> None:
    made = await finish_all(seed, await seed.subscription(), [None] * 5)
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = '2026-01-31T12:00:00Z'")
    page = await attempt_log.list_attempts(seed.connection, AttemptFilter(), limit=2)
    found = ids(page)
    while page.following:
        page = await attempt_log.list_attempts(
            seed.connection, AttemptFilter(), before=page.following, limit=2
        )
        found += ids(page)
    assert found == made[::-1]


async def test_a_page_passes_so_many_and_says_where_it_stopped(
    seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_log, "MAX_SCANNED", 20)
    wanted = AttemptFilter(event_type="a")
    made = await finish_all(seed, await seed.subscription("a"), [None])
    await finish_all(seed, await seed.subscription("b"), [None] * 60)
    page, asked = await attempt_log.list_attempts(seed.connection, wanted, limit=2), 1
    assert page.items == []
    while not page.items:
        assert page.following is not None
        page = await attempt_log.list_attempts(seed.connection, wanted, before=page.following, limit=2)
        asked += 1
    assert (ids(page), asked) == (made, 2)


@pytest.mark.parametrize("most", [0, 100])
async def test_a_tenants_attempts_are_its_own_merged_or_not(
    seed: Seed, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Of several subscriptions, a deleted one too; where they are too many to merge, from the log of all tenants."""
    monkeypatch.setattr(attempt_log, "MAX_MERGED", most)
    first, second = (
        await seed.subscription("a", tenant_id="rare"),
        await seed.subscription("b", tenant_id="rare"),
    )
    made = [*await finish_all(seed, first, [None]), *await finish_all(seed, second, ["http_503"])]
    await finish_all(seed, await seed.subscription("c"), [None] * 5)
    await seed.rewrite("UPDATE subscriptions SET deleted_at = now(), active = false WHERE id = %s", [first])
    everything = await attempt_log.list_attempts(seed.connection, AttemptFilter(tenant_id="rare"))
    assert sorted(ids(everything)) == sorted(made)
    failed = AttemptFilter(tenant_id="rare", outcome=Outcome.FAILED)
    assert ids(await attempt_log.list_attempts(seed.connection, failed)) == made[1:]
    nobody = AttemptFilter(tenant_id="nobody")
    assert ids(await attempt_log.list_attempts(seed.connection, nobody)) == []


async def test_attempts_that_have_not_ended_are_shown_but_not_listed(seed: Seed) -> None:
    waiting, leased = await seed.job(), await seed.job()
    await seed.claim(leased)
    assert ids(await attempt_log.list_attempts(seed.connection, AttemptFilter())) == []
    shown = [
        await attempt_log.show_attempt(seed.connection, one, tenant_id=None) for one in (waiting, leased)
    ]
    assert [(one.status, one.finished_at) for one in shown] == [("Pending", None), ("Leased", None)]


async def test_another_tenants_attempt_is_unknown(seed: Seed) -> None:
    job_id = await seed.job(await seed.subscription(tenant_id="a"))
    assert (await attempt_log.show_attempt(seed.connection, job_id, tenant_id="a")).id == job_id
    with pytest.raises(NotFound):
        await attempt_log.show_attempt(seed.connection, job_id, tenant_id="b")


class Follower:
    """Polls as a client does, and keeps what it is given, repeats included."""

    def __init__(self, connection: Connection, **wanted: Any) -> None:
        self.connection = connection
        self.wanted = AttemptFilter(**wanted)
        self.cursor: FollowCursor | None = None
        self.given: list[LoggedAttempt] = []

    async def poll(self, limit: int = 50) -> None:
        while True:
            done = await follow_attempts.follow_attempts(
                self.connection, self.wanted, self.cursor, limit=limit
            )
            self.cursor = done.cursor
            self.given += done.items
            if not done.more:
                return

    @property
    def seen(self) -> set[int]:
        return {one.id for one in self.given}


async def test_a_follower_sees_what_ends_from_now_on(connect: Connect, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    before = await finish_all(seed, subscription_id, [None])
    follower = Follower(await connect(Role.ADMIN))
    await follower.poll()
    after = await finish_all(seed, subscription_id, [None, "http_500", None])
    await follower.poll(limit=2)
    assert [one.id for one in follower.given] == after
    assert not set(before) & follower.seen


@pytest.fixture
def clock_without_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the margin would hide for a second what a test is about."""
    monkeypatch.setattr(follow_attempts, "CLOCK_MARGIN", timedelta(0))


@pytest.mark.parametrize("limit", [1, 50])
async def test_a_result_that_commits_late_is_not_missed(
    connect: Connect, seed: Seed, clock_without_margin: None, limit: int
) -> None:
    """Its time is older than what was seen since, by as many polls as its transaction was open."""
    subscription_id = await seed.subscription()
    late, *others = await seed.jobs(subscription_id, 6)
    worker, follower = await connect(Role.DELIVERY), Follower(await connect(Role.ADMIN))
    await follower.poll()
    async with worker.transaction():
        await record(worker, seed, late)
        for job_id in others:
            await seed.finish(job_id)
            await follower.poll(limit)
        assert follower.seen == set(others)
    await follower.poll(limit)
    assert follower.seen == {late, *others}


async def test_what_is_settled_is_not_given_again(
    connect: Connect, seed: Seed, clock_without_margin: None
) -> None:
    subscription_id = await seed.subscription()
    follower = Follower(await connect(Role.ADMIN))
    await follower.poll()
    made = await finish_all(seed, subscription_id, [None] * 3)
    await follower.poll()
    await follower.poll()
    given = len(follower.given)
    await follower.poll()
    await follower.poll()
    assert (len(follower.given), follower.seen) == (given, set(made))


async def test_a_transaction_that_stays_open_holds_a_follower_back_for_a_minute_at_the_most(
    connect: Connect, seed: Seed
) -> None:
    worker, follower = await connect(Role.DELIVERY), Follower(await connect(Role.ADMIN))
    job_id = await seed.job()
    async with worker.transaction():
        await record(worker, seed, job_id)
        await follower.poll()
        assert follower.cursor is not None
        old = follower.cursor.floor - timedelta(hours=1)
        follower.cursor = replace(follower.cursor, floor=old)
        await follower.poll()
        assert old + timedelta(minutes=58) < follower.cursor.floor < old + timedelta(minutes=60)


async def test_a_result_gets_its_number_before_its_time(connect: Connect, seed: Seed) -> None:
    """A result that is slow in its statement has been counted as open: a follower cannot pass it by."""
    worker = await connect(Role.DELIVERY)
    job_id = await seed.job()
    (claimed,) = await seed.claim(job_id)
    results = [AttemptResult(claimed, outcome())]
    await seed.connection.execute(SLOW_RESULTS)
    async with seed.connection.transaction():
        await seed.connection.execute("SELECT pg_advisory_xact_lock(1)")
        writing = asyncio.create_task(deliver.record_results(worker, results, worker_id=WORKER))
        watcher = await connect(Role.OWNER)
        async with asyncio.timeout(10):
            while not await has_number(watcher, worker):
                await asyncio.sleep(0.01)
    assert await writing == {job_id}


SLOW_RESULTS: LiteralString = """
    CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
        'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END';
    CREATE TRIGGER a_slow_result BEFORE UPDATE ON webhook_delivery_jobs
        FOR EACH ROW EXECUTE FUNCTION wait_for_the_test();
"""


async def has_number(watcher: Connection, connection: Connection) -> bool:
    cursor = await watcher.execute(
        "SELECT backend_xid IS NOT NULL AND wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s",
        [connection.info.backend_pid],
    )
    return bool((await cursor.fetchall())[0][0])


async def test_a_followers_filter_leaves_out_the_rest(connect: Connect, seed: Seed) -> None:
    follower = Follower(await connect(Role.ADMIN), outcome=Outcome.FAILED, tenant_id="a")
    await follower.poll()
    made = await finish_all(seed, await seed.subscription("a", tenant_id="a"), [None, "http_500"])
    await finish_all(seed, await seed.subscription("b", tenant_id="b"), ["http_500"])
    await follower.poll()
    assert follower.seen == {made[1]}


async def test_the_stats_of_a_subscription(connect: Connect, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    await seed.saga(SagaStatus.PENDING_RETRY, subscription_id)
    for milliseconds in (10, 20, 30):
        await seed.finish((await seed.jobs(subscription_id, 1))[0], duration_ms=milliseconds)
    waiting, leased = await seed.jobs(subscription_id, 2)
    await seed.claim(leased)
    await finish_all(seed, await seed.subscription(), ["http_500"])
    admin = await connect(Role.ADMIN)
    stats = await subscription_stats(admin, subscription_id, window_hours=1, tenant_id=None)
    assert (stats.completed, stats.failed, stats.success_rate) == (3, 1, 0.75)
    assert isinstance(stats.last_error, LastError)
    assert stats.last_error.code == "http_503"
    assert stats.backlog == Backlog(pending=1, leased=1, waiting_retry=1)
    assert stats.latency_ms == Latency(p50=10, p95=30, p99=30)
    assert stats.next_retry_at == await seed.value(
        "SELECT next_attempt_at FROM webhook_delivery_sagas WHERE status = 'PendingRetry'"
    )
    assert (waiting, stats.since) == (waiting, None)


async def test_the_stats_of_a_subscription_that_was_never_tried(seed: Seed) -> None:
    stats = await subscription_stats(
        seed.connection, await seed.subscription(), window_hours=24, tenant_id=None
    )
    assert (stats.completed, stats.success_rate, stats.last_error, stats.latency_ms) == (0, None, None, None)
    assert (stats.next_retry_at, stats.backlog) == (None, Backlog(0, 0, 0))


async def age(seed: Seed, by: timedelta) -> None:
    """Let every finished attempt be older."""
    await seed.rewrite("UPDATE webhook_delivery_jobs SET finished_at = finished_at - %s", [by])


async def test_a_window_leaves_out_what_is_older(seed: Seed) -> None:
    subscription_id = await seed.subscription()
    await finish_all(seed, subscription_id, [None, "http_500"])
    await age(seed, timedelta(hours=2))
    counts: list[tuple[int, int]] = []
    for hours in (1, 24):
        stats = await subscription_stats(seed.connection, subscription_id, window_hours=hours, tenant_id=None)
        counts.append((stats.completed, stats.failed))
        assert stats.last_error is not None  # the newest failure, however old
    assert counts == [(0, 0), (1, 1)]


async def test_the_stats_of_a_busy_subscription_look_at_the_newest_attempts(
    seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hooksaga.operations.subscription_stats.SAMPLE", 2)
    subscription_id = await seed.subscription()
    await finish_all(seed, subscription_id, ["http_500", None, None])
    stats = await subscription_stats(seed.connection, subscription_id, window_hours=1, tenant_id=None)
    assert (stats.completed, stats.failed, stats.success_rate) == (2, 0, 1)
    assert stats.since == await seed.value("SELECT finished_at FROM webhook_delivery_jobs WHERE id = 2")


async def test_stats_are_the_tenants_own(seed: Seed) -> None:
    subscription_id = await seed.subscription(tenant_id="a")
    for tenant_id in ("b", ""):
        with pytest.raises(NotFound):
            await subscription_stats(seed.connection, subscription_id, window_hours=1, tenant_id=tenant_id)
    with pytest.raises(NotFound):
        await subscription_stats(seed.connection, 10**9, window_hours=1, tenant_id=None)


async def test_a_retry_and_a_requeue_are_told_apart_by_their_rows(seed: Seed) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(saga_id)
    await seed.finish(await seed.start(saga_id))
    dead = await seed.dead_letter()
    requeued = await seed.value("SELECT saga_id FROM requeue_dead_letter(ARRAY[%s::bigint])", [dead])
    await seed.finish(await seed.start(requeued))
    page = await attempt_log.list_attempts(seed.connection, AttemptFilter())
    told = [(one.attempt_number, one.requeued_from, one.max_attempts) for one in page.items]
    assert told == [
        (1, dead, POLICY.max_retry_limit),
        (1, None, POLICY.max_retry_limit),
        (2, None, POLICY.max_retry_limit),
        (1, None, POLICY.max_retry_limit),
    ]
