"""All roles at once on one database, in random order, statement by statement, against a model in plain Python.

Hypothesis chooses who does what, who stops in the middle of a transaction with his locks, whose connection breaks, who
never learns that he has committed, which lease ends and which wait is over. After every step the audit has to find
nothing and the tables have to be what the ledger was told. At the end of each run everybody gets well, and whatever was
accepted has to end.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shared.adapters.database import Connection, DatabaseAddress, Role
from shared.core.address_policy import AddressPolicy
from shared.core.event_input import EventDraft
from shared.core.models import SubscriptionChange
from shared.stages import clean_leases, deliver, orchestrate, requeue, subscriptions
from shared.stages.accept_events import accept_events
from shared.stages.deliver import AttemptResult, ClaimedJob
from shared.stages.route_events import route_events
from shared.stages.verify_subscription import mark_verified
from tests.database.crew import MAX_CLAIMS, POLICY, Crew
from tests.database.interleaving import Actor, Pace
from tests.database.seed import outcome
from tests.faults.promises import Promise, RecordProperty, tried
from tests.faults.sabotage import VARIABLE, from_environment

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.timeout(1200)]

T = TypeVar("T")

LONG = os.environ.get("HOOKSAGA_FAULTS") == "all"
EXAMPLES, STEPS = (400, 100) if LONG else (50, 60)
LEASE_SECONDS = 3600
TYPES = ("type.a", "type.b")
"""Two subscriptions take the first type, one takes the second."""

numbers = st.integers(0, 11)
"""Chooses one of those that are there, modulo how many there are."""
paces = st.sampled_from([Pace.WHOLE, Pace.WHOLE, Pace.STEPS, Pace.STEPS, Pace.DEAF])
contents = st.tuples(
    st.sampled_from(TYPES), st.sampled_from([None, "key-1", "key-2"]), st.sampled_from(["1", "1.0"])
)
flags = st.booleans()
RARELY = st.integers(0, 5).map(lambda number: number == 0)


def nothing(_: Any) -> None:
    """To be told where the tables say it all."""


class Interleaving(RuleBasedStateMachine):
    """One run. Rules are named after what the role does; `who` and `which` choose among those that are there."""

    def __init__(self, crew: Crew, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.crew = crew
        self._loop = loop

    def do(self, work: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await work

        return self._loop.run_until_complete(awaited())

    def act(
        self,
        role: Role,
        who: int,
        pace: Pace,
        stage: Callable[[Connection], Awaitable[Any]],
        told: Callable[[Any], None],
        learned: Callable[[Any], None] = nothing,
    ) -> None:
        """One of the role's actors does the stage; one that is at something else goes on with that instead."""
        actors = self.crew.actors[role]
        actor = actors[who % len(actors)]
        if actor.is_busy:
            self.do(self.crew.go_on(actor))
        else:
            self.do(self.crew.work(actor, pace, stage, told, learned))

    def worker(self, who: int) -> Actor:
        workers = self.crew.actors[Role.DELIVERY]
        return workers[who % len(workers)]

    def one_of(self, which: int, table: str, **columns: Any) -> int | None:
        """The id of one of the rows, or None."""
        found = self.crew.ids(table, **columns)
        return found[which % len(found)] if found else None

    @initialize(rounds=st.integers(0, 3))
    def it_has_begun(self, rounds: int) -> None:
        """Three subscriptions, and up to three events with attempts that failed."""
        self.three_subscriptions()
        for number in range(rounds):
            draft = EventDraft(TYPES[number % 2], "1", external_id=f"key-{number}" if number else None)
            self.do(self.an_event_fails(draft))
        self.do(self.an_event_is_claimed(EventDraft(TYPES[0], "1", external_id="key-2")))
        self.do(self.crew.look())

    def three_subscriptions(self) -> None:
        self.do(self.crew.start_anew())
        self.crew.done["runs"] += 1
        self.untouched = {
            self.do(self.crew.seed.subscription(kind, max_retry_limit=limit)): kind
            for kind, limit in zip((*TYPES, TYPES[0]), (1, 2, 3), strict=True)
        }
        self.crew.ledger.limits = dict(zip(self.untouched, (1, 2, 3), strict=True))

    @rule(who=numbers, batch=st.lists(contents, min_size=1, max_size=3), pace=paces)
    def a_producer_sends(self, who: int, batch: list[tuple[str, str | None, str]], pace: Pace) -> None:
        drafts = [EventDraft(kind, payload, external_id=key) for kind, key, payload in batch]
        self.act(
            Role.INGEST,
            who,
            pace,
            lambda connection: accept_events(connection, drafts),
            lambda answers: self.crew.ledger.accepted(drafts, answers),
        )

    @precondition(lambda self: self.crew.rows["events"])
    @rule(who=numbers, which=numbers, is_named=flags, pace=paces)
    def a_router_routes(self, who: int, which: int, is_named: bool, pace: Pace) -> None:
        named = self.one_of(which, "events") if is_named else None
        ids = None if named is None else [named]
        self.act(
            Role.ROUTER,
            who,
            pace,
            lambda connection: route_events(connection, event_ids=ids, max_events=2),
            nothing,
        )

    @precondition(lambda self: self.crew.rows["sagas"])
    @rule(who=numbers, pace=paces, retries=flags, limit=st.sampled_from([1, 500]))
    def an_orchestrator_starts_attempts(self, who: int, pace: Pace, retries: bool, limit: int) -> None:
        start = orchestrate.start_due_retries if retries else orchestrate.start_first_attempts
        self.act(
            Role.ORCHESTRATOR,
            who,
            pace,
            lambda connection: start(connection, POLICY, limit=limit),
            nothing,
        )

    @precondition(lambda self: self.crew.rows["sagas"])
    @rule(who=numbers, which=st.lists(numbers, min_size=1, max_size=3), pace=paces)
    def an_orchestrator_is_told_of_sagas(self, who: int, which: list[int], pace: Pace) -> None:
        named = [self.one_of(number, "sagas") for number in which]
        ids = [saga_id for saga_id in named if saga_id is not None]
        self.act(
            Role.ORCHESTRATOR,
            who,
            pace,
            lambda connection: orchestrate.start_attempts_of(connection, POLICY, ids),
            nothing,
        )

    @precondition(lambda self: self.crew.rows["jobs"])
    @rule(who=numbers, which=numbers, is_named=flags, pace=paces)
    def an_orchestrator_takes_results(self, who: int, which: int, is_named: bool, pace: Pace) -> None:
        named = self.one_of(which, "jobs") if is_named else None
        ids = None if named is None else [named]
        self.act(
            Role.ORCHESTRATOR,
            who,
            pace,
            lambda connection: orchestrate.apply_results(connection, POLICY, job_ids=ids),
            self.crew.ledger.applied_results,
        )

    @precondition(lambda self: self.crew.rows["sagas"])
    @rule(who=numbers, which=numbers, pace=paces)
    def an_operator_cancels(self, who: int, which: int, pace: Pace) -> None:
        saga_id = self.one_of(which, "sagas") or 1
        self.act(
            Role.ORCHESTRATOR,
            who,
            pace,
            lambda connection: orchestrate.cancel_saga(connection, POLICY, saga_id),
            self.crew.ledger.canceled_one,
        )

    @precondition(lambda self: self.crew.rows["jobs"])
    @rule(who=numbers, which=numbers, all_that_wait=flags, pace=paces)
    def a_worker_claims(self, who: int, which: int, all_that_wait: bool, pace: Pace) -> None:
        """All that wait, or what a message names, which may be anything."""
        worker = self.worker(who).name
        ids = self.crew.ids("jobs", status="Pending") if all_that_wait else [self.one_of(which, "jobs") or 1]
        self.act(
            Role.DELIVERY,
            who,
            pace,
            lambda connection: deliver.claim_jobs(
                connection, ids, worker_id=worker, lease_seconds=LEASE_SECONDS
            ),
            lambda jobs: self.crew.ledger.claimed(worker, jobs),
            self.crew.memory[worker].extend,
        )

    @precondition(lambda self: any(self.crew.memory.values()))
    @rule(who=numbers, fails=flags, is_repeated=RARELY, pace=paces)
    def a_worker_reports(self, who: int, fails: bool, is_repeated: bool, pace: Pace) -> None:
        """What it holds in its memory, whatever became of its claims; it may forget that it has reported."""
        who = self.who_remembers(who)
        worker = self.worker(who).name
        results = [self.result_of(job, fails) for job in self.crew.memory[worker]]
        if not self.worker(who).is_busy and not is_repeated:
            self.crew.memory[worker] = []
        self.act(
            Role.DELIVERY,
            who,
            pace,
            lambda connection: deliver.record_results(connection, results, worker_id=worker),
            lambda written: self.crew.ledger.reported(worker, results, written),
        )

    def who_remembers(self, who: int) -> int:
        """The number of one of the workers that have something in their memory."""
        having = [number for number, jobs in enumerate(self.crew.memory.values()) if jobs]
        return having[who % len(having)]

    def result_of(self, job: ClaimedJob, fails: bool) -> AttemptResult:
        if not job.deliverable:
            return AttemptResult(job, outcome("subscription_inactive"))
        return AttemptResult(job, outcome("http_503" if fails else None))

    @precondition(lambda self: any(self.crew.memory.values()))
    @rule(who=numbers, pace=paces)
    def a_worker_hands_back(self, who: int, pace: Pace) -> None:
        who = self.who_remembers(who)
        worker = self.worker(who).name
        jobs = list(self.crew.memory[worker])
        self.act(
            Role.DELIVERY,
            who,
            pace,
            lambda connection: deliver.hand_back_jobs(connection, jobs, worker_id=worker),
            lambda _: self.crew.ledger.handed_back(worker, jobs),
        )

    @precondition(lambda self: self.crew.ledger.held)
    @rule(who=numbers)
    def a_worker_dies(self, who: int) -> None:
        """With its leases. One of the same name takes its place and knows nothing."""
        worker = self.worker(who)
        self.crew.memory[worker.name] = []
        self.do(worker.break_off())
        self.do(self.crew.settle(worker))
        self.crew.done["workers that died"] += 1

    @precondition(lambda self: self.crew.ledger.held)
    @rule(pace=paces, limit=st.sampled_from([1, 500]))
    def the_cleaner_ends_leases(self, pace: Pace, limit: int) -> None:
        self.act(
            Role.LEASE_CLEANER,
            0,
            pace,
            lambda connection: clean_leases.clean_leases(connection, max_claims=MAX_CLAIMS, limit=limit),
            self.crew.ledger.cleaned,
        )

    @precondition(lambda self: self.crew.rows["dead_letters"])
    @rule(who=numbers, which=st.lists(numbers, min_size=1, max_size=2), pace=paces)
    def an_operator_requeues(self, who: int, which: list[int], pace: Pace) -> None:
        named = [self.one_of(number, "dead_letters") for number in which]
        ids = [letter_id for letter_id in named if letter_id is not None]
        self.act(
            Role.ADMIN,
            who,
            pace,
            lambda connection: requeue.requeue_dead_letters(connection, ids),
            self.crew.ledger.requeued_one,
        )

    @rule(which=numbers, limit=st.sampled_from([1, 2, 3]), pace=paces)
    def somebody_changes_a_limit(self, which: int, limit: int, pace: Pace) -> None:
        self.change(which, SubscriptionChange(max_retry_limit=limit), pace)

    @rule(which=numbers, is_active=flags)
    def somebody_stops_or_starts_a_subscription(self, which: int, is_active: bool) -> None:
        """Whole: whether an event of the moments before its COMMIT is for it is left open (decision 7)."""
        self.change(which, SubscriptionChange(active=is_active), Pace.WHOLE)

    @rule(which=numbers)
    def somebody_moves_a_subscription(self, which: int) -> None:
        self.change(which, SubscriptionChange(callback_url="https://moved.example/hook"), Pace.WHOLE)

    def change(self, which: int, change: SubscriptionChange, pace: Pace) -> None:
        chosen = self.one_of(which, "subscriptions")
        assert chosen is not None
        if change.max_retry_limit is None:
            self.untouched.pop(chosen, None)
        known = self.crew.ledger.limits
        known[chosen] = max(known[chosen], change.max_retry_limit or 0)
        self.act(
            Role.SUBSCRIPTIONS,
            0,
            pace,
            lambda connection: subscriptions.change_subscription(
                connection, chosen, change, tenant_id=None, policy=AddressPolicy()
            ),
            nothing,
        )

    @rule(which=numbers)
    def a_receiver_answers_its_challenge(self, which: int) -> None:
        chosen = self.one_of(which, "subscriptions")
        assert chosen is not None
        self.untouched.pop(chosen, None)
        self.act(
            Role.SUBSCRIPTIONS,
            0,
            Pace.WHOLE,
            lambda connection: mark_verified(connection, chosen, "https://moved.example/hook"),
            nothing,
        )

    @precondition(lambda self: self.crew.ids("sagas", status="PendingRetry"))
    @rule(which=numbers, everywhere=flags)
    def the_wait_of_a_saga_is_over(self, which: int, everywhere: bool) -> None:
        saga_id = self.one_of(which, "sagas", status="PendingRetry")
        self.do(self.crew.end_waits(None if everywhere else saga_id))

    @precondition(lambda self: self.crew.ledger.held)
    @rule(which=numbers, everywhere=flags)
    def a_lease_is_over(self, which: int, everywhere: bool) -> None:
        job_id = self.one_of(which, "jobs", status="Leased")
        self.do(self.crew.end_leases(None if everywhere else job_id))

    @precondition(lambda self: self.crew.ledger.held)
    @rule(who=numbers, which=numbers)
    def a_job_changes_hands(self, who: int, which: int) -> None:
        """Its worker is not told, and may report yet."""
        self.a_lease_is_over(which, everywhere=True)
        self.the_cleaner_ends_leases(Pace.WHOLE, 500)
        self.do(self.crew.look())
        self.a_worker_claims(who, which, all_that_wait=True, pace=Pace.WHOLE)

    @precondition(lambda self: self.crew.ids("sagas", status="PendingRetry"))
    @rule(who=numbers)
    def retries_begin(self, who: int) -> None:
        self.the_wait_of_a_saga_is_over(0, everywhere=True)
        self.an_orchestrator_starts_attempts(who, Pace.WHOLE, retries=True, limit=500)

    @precondition(lambda self: self.crew.busy)
    @rule(which=numbers, to_the_end=flags)
    def somebody_goes_on(self, which: int, to_the_end: bool) -> None:
        busy = self.crew.busy
        self.do(self.crew.go_on(busy[which % len(busy)], to_the_end=to_the_end))

    @precondition(lambda self: self.crew.busy)
    @rule(which=numbers)
    def somebody_loses_his_connection(self, which: int) -> None:
        busy = self.crew.busy
        self.do(self.crew.lose(busy[which % len(busy)]))

    @invariant()
    def everything_that_must_hold_does(self) -> None:
        self.crew.done["steps"] += 1
        self.do(self.crew.check())

    def teardown(self) -> None:
        """Everybody is well again: whatever is open has to end."""
        self.do(self.crew.finish_all())
        for _ in range(40):
            if not self.do(self.open_work()):
                break
            self.do(self.everybody_works())
        self.do(self.all_has_ended())

    async def open_work(self) -> int:
        return await self.crew.seed.value(
            "SELECT (SELECT count(*) FROM routing_outbox) + (SELECT count(*) FROM webhook_delivery_sagas"
            " WHERE status NOT IN ('Completed', 'DeadLettered'))"
        )

    async def everybody_works(self, *, fails: bool = False) -> None:
        """One round of a system in which nothing is wrong, but for the receivers if one says so."""
        crew, ledger = self.crew, self.crew.ledger
        cleaner, worker = crew.actors[Role.LEASE_CLEANER][0], crew.actors[Role.DELIVERY][0]
        orchestrator = crew.actors[Role.ORCHESTRATOR][0]
        await crew.end_leases()
        if not fails:
            await crew.end_waits()
        clean = partial(clean_leases.clean_leases, max_claims=MAX_CLAIMS)
        await crew.work(cleaner, Pace.WHOLE, clean, ledger.cleaned)
        await self.attempts_start()
        claimed = await self.all_are_claimed(worker)
        results = [self.result_of(job, fails) for job in claimed]
        await crew.work(
            worker,
            Pace.WHOLE,
            partial(deliver.record_results, results=results, worker_id=worker.name),
            lambda written: ledger.reported(worker.name, results, written),
        )
        take = partial(orchestrate.apply_results, defaults=POLICY)
        await crew.work(orchestrator, Pace.WHOLE, take, ledger.applied_results)

    async def attempts_start(self) -> None:
        crew = self.crew
        router, orchestrator = crew.actors[Role.ROUTER][0], crew.actors[Role.ORCHESTRATOR][0]
        await crew.work(router, Pace.WHOLE, partial(route_events), nothing)
        for start in (orchestrate.start_first_attempts, orchestrate.start_due_retries):
            await crew.work(orchestrator, Pace.WHOLE, partial(start, defaults=POLICY), nothing)

    async def all_are_claimed(self, worker: Actor) -> list[ClaimedJob]:
        """Every job that waits."""
        await self.crew.look()
        ids, claimed = self.crew.ids("jobs", status="Pending"), list[ClaimedJob]()
        claim = partial(deliver.claim_jobs, job_ids=ids, worker_id=worker.name, lease_seconds=LEASE_SECONDS)
        told = partial(self.crew.ledger.claimed, worker.name)
        await self.crew.work(worker, Pace.WHOLE, claim, told, claimed.extend)
        return claimed

    async def an_event_comes(self, draft: EventDraft) -> None:
        producer = self.crew.actors[Role.INGEST][0]
        accept = partial(accept_events, drafts=[draft])
        told = partial(self.crew.ledger.accepted, [draft])
        await self.crew.work(producer, Pace.WHOLE, accept, told)

    async def an_event_fails(self, draft: EventDraft) -> None:
        await self.an_event_comes(draft)
        await self.everybody_works(fails=True)

    async def an_event_is_claimed(self, draft: EventDraft) -> None:
        worker = self.crew.actors[Role.DELIVERY][0]
        await self.an_event_comes(draft)
        await self.attempts_start()
        self.crew.memory[worker.name] += await self.all_are_claimed(worker)

    async def all_has_ended(self) -> None:
        """Nothing is open, nothing was lost: a subscription that nobody touched has every event of its type."""
        assert await self.open_work() == 0
        await self.crew.check()
        assert await self.crew.findings(with_time=True) == []
        sagas = self.crew.rows["sagas"]
        for subscription_id, kind in self.untouched.items():
            due = {event for event, draft in self.crew.ledger.events.items() if draft.event_type == kind}
            firsts = [saga for saga in sagas if saga["requeued_from"] is None]
            assert due == {s["event_id"] for s in firsts if s["subscription_id"] == subscription_id}
        for saga in sagas:
            self.crew.done[f"sagas that ended as {saga['status']}"] += 1
        self.crew.done["sagas from a requeue"] += len(self.crew.ledger.requeued)
        self.crew.done["late results"] += self.crew.ledger.dropped
        self.crew.done["jobs given up after too many claims"] += list(self.crew.ledger.ended.values()).count(
            "lease_expired"
        )


MUST_HAPPEN = (
    "answers lost after COMMIT",
    "connections lost within a transaction",
    "jobs given up after too many claims",
    "late results",
    "sagas from a requeue",
    "sagas that ended as Completed",
    "sagas that ended as DeadLettered",
    "waits for the lock of another",
    "workers that died",
)
"""A run in which one of these did not happen has tried less than it says."""


@pytest.fixture
def crew(database_address: DatabaseAddress) -> Iterator[tuple[Crew, asyncio.AbstractEventLoop]]:
    from_environment()
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        owner = loop.run_until_complete(
            psycopg.AsyncConnection.connect(database_address.url, autocommit=True, prepare_threshold=3)
        )
        crew = Crew(owner, database_address)
        yield crew, loop
        loop.run_until_complete(crew.close())
        loop.run_until_complete(owner.close())


def test_no_order_of_statements_breaks_a_promise(
    crew: tuple[Crew, asyncio.AbstractEventLoop], record_property: RecordProperty
) -> None:
    class OfThisCrew(Interleaving):
        def __init__(self) -> None:
            super().__init__(*crew)

    run_state_machine_as_test(
        OfThisCrew,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not LONG,
            deadline=None,
            database=None,
            print_blob=True,
            phases=[Phase.generate] if VARIABLE in os.environ else [Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    done = crew[0].done
    assert [what for what in MUST_HAPPEN if not done[what]] == []
    tried(
        record_property,
        Promise.INTERLEAVED,
        f"steps of {len(crew[0].everybody)} connections in {done['runs']} random orders",
        "the audit and the model agree after each",
        times=done["steps"],
    )
    for what in MUST_HAPPEN:
        tried(record_property, Promise.INTERLEAVED, f"of them: {what}", "as the model says", times=done[what])
