"""Random orders of everything that the roles do: one run of the model (tests/database/test_model.py).

Rules are named after what a role does; `who` and `which` choose among those that are there. An actor that is at
something else goes on with that instead.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hooksaga.adapters.database import Connection, Role
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.event_input import EventDraft
from hooksaga.core.models import SubscriptionChange
from hooksaga.core.requeue_models import NewBulkOperation
from hooksaga.core.subscription_limits import RateLimit
from hooksaga.operations import bulk_operations, bulk_steps, requeue, subscription_flow, subscriptions
from hooksaga.operations.verify_subscription import mark_verified
from hooksaga.stages import clean_leases, deliver
from hooksaga.stages.accept_events import accept_events
from hooksaga.stages.route_events import route_events
from tests.database import orchestrate
from tests.database.crew import LEASE_SECONDS, MAX_LOST_LEASES, POLICY, Crew, nothing
from tests.database.healthy_rounds import HealthyRounds, result_of
from tests.database.interleaving import Actor, Pace

T = TypeVar("T")

TYPES = ("type.a", "type.b")
"""Two subscriptions take the first type, one takes the second."""

BOX = SecretBox([generate_key()])
MOVED = "https://moved.example.com/hook"
CHANGES = [
    *(SubscriptionChange(max_retry_limit=limit) for limit in (1, 2, 3)),
    SubscriptionChange(active=False),
    SubscriptionChange(active=True),
    SubscriptionChange(active=True),
    SubscriptionChange(callback_url=MOVED),
    *(SubscriptionChange(max_in_flight=limit) for limit in (1, 2)),
    SubscriptionChange(rate_limit=RateLimit(count=1, per_seconds=60)),
    SubscriptionChange(rate_limit=None),
    *(SubscriptionChange(circuit_breaker=has_one) for has_one in (False, True)),
]
MAX_IN_FLIGHT = 2
"""The concurrency limit of each subscription, at most. Of three the last is ordered."""

KEYS = {"1": "a", "1.0": None}
"""The ordering key of an event by its content."""

numbers = st.integers(0, 11)
"""Chooses one of those that are there, modulo how many there are."""
paces = st.sampled_from([Pace.WHOLE, Pace.WHOLE, Pace.STEPS, Pace.STEPS, Pace.DEAF])
contents = st.tuples(
    st.sampled_from(TYPES), st.sampled_from([None, "key-1", "key-2"]), st.sampled_from(["1", "1.0"])
)
flags = st.booleans()
RARELY = st.integers(0, 5).map(lambda number: number == 0)


class Interleaving(RuleBasedStateMachine):
    """One run."""

    def __init__(self, crew: Crew, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.crew = crew
        self.healthy = HealthyRounds(crew)
        self.untouched: dict[int, str] = {}
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
            key = f"key-{number}" if number else None
            draft = EventDraft(TYPES[number % 2], "1", external_id=key, ordering_key=KEYS["1"])
            self.do(self.healthy.an_event_fails(draft))
        claimed = EventDraft(TYPES[0], "1", external_id="key-2", ordering_key=KEYS["1"])
        self.do(self.healthy.an_event_is_claimed(claimed))
        self.do(self.crew.look())

    def three_subscriptions(self) -> None:
        self.do(self.crew.start_anew())
        self.crew.done["runs"] += 1
        self.untouched = {
            self.do(
                self.crew.seed.subscription(
                    kind, max_retry_limit=limit, max_in_flight=MAX_IN_FLIGHT, ordered=limit == 3
                )
            ): kind
            for kind, limit in zip((*TYPES, TYPES[0]), (1, 2, 3), strict=True)
        }
        self.crew.ledger.limits = dict(zip(self.untouched, (1, 2, 3), strict=True))
        self.crew.ledger.rooms = dict.fromkeys(self.untouched, MAX_IN_FLIGHT)

    @rule(who=numbers, batch=st.lists(contents, min_size=1, max_size=3), pace=paces)
    def a_producer_sends(self, who: int, batch: list[tuple[str, str | None, str]], pace: Pace) -> None:
        drafts = [
            EventDraft(kind, payload, external_id=key, ordering_key=KEYS[payload])
            for kind, key, payload in batch
        ]
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
    @rule(who=numbers, which=numbers, what=st.sampled_from(["first", "woken", "named"]), pace=paces)
    def an_orchestrator_starts_attempts(self, who: int, which: int, what: str, pace: Pace) -> None:
        ids = [
            saga_id for saga_id in (self.one_of(which + 1, "sagas"), self.one_of(which, "sagas")) if saga_id
        ]
        stages = {
            "first": partial(orchestrate.start_all, defaults=POLICY),
            "woken": partial(orchestrate.start_attempts, defaults=POLICY, most_woken=1 + which),
            "named": partial(orchestrate.start_attempts_of, defaults=POLICY, saga_ids=ids),
        }
        self.act(Role.ORCHESTRATOR, who, pace, stages[what], nothing)

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
        """Report the results in the worker's memory, whatever happened to its claims; sometimes report them twice."""
        who = self.who_remembers(who)
        remembered = list(self.crew.memory[self.worker(who).name])
        self.report(who, fails, pace)
        if is_repeated:
            self.crew.memory[self.worker(who).name] = remembered

    def report(self, who: int, fails: bool, pace: Pace) -> None:
        worker = self.worker(who).name
        results = [result_of(job, fails=fails) for job in self.crew.memory[worker]]
        locked: set[int] = set()

        def reported(written: set[int]) -> None:
            self.crew.ledger.reported(worker, results, locked, written)
            self.crew.memory[worker] += [result.job for result in results if result.job.id in locked]

        if not self.worker(who).is_busy:
            self.crew.memory[worker] = []
        self.act(
            Role.DELIVERY,
            who,
            pace,
            partial(deliver.record_results, results=results, worker_id=worker, on_locked=locked.add),
            reported,
        )

    def who_remembers(self, who: int) -> int:
        """The number of one of the workers that have something in their memory."""
        having = [number for number, jobs in enumerate(self.crew.memory.values()) if jobs]
        return having[who % len(having)]

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
            lambda locked: self.crew.ledger.handed_back(worker, [job for job in jobs if job not in locked]),
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
            lambda connection: clean_leases.clean_leases(
                connection, max_lost_leases=MAX_LOST_LEASES, limit=limit
            ),
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

    @precondition(lambda self: self.crew.rows["dead_letters"])
    @rule(who=numbers, is_new=flags, pace=paces)
    def a_bulk_requeue_goes_on(self, who: int, is_new: bool, pace: Pace) -> None:
        """Start an operation or execute a step: at the maximum rate, one saga of a subscription at a time."""
        stages = (
            partial(bulk_steps.step_bulk_operation, horizon_seconds=1, max_open=1),
            partial(
                bulk_operations.start_bulk_operation,
                wanted=NewBulkOperation(kind="requeue", rate_per_second=1000),
                caller=bulk_operations.Requester(None, "model"),
            ),
        )
        told = nothing if is_new else self.crew.ledger.stepped
        self.act(Role.ADMIN, who, pace, stages[is_new], told)

    @rule(which=numbers, change=st.sampled_from(CHANGES), pace=paces)
    def somebody_changes_a_subscription(self, which: int, change: SubscriptionChange, pace: Pace) -> None:
        """Whole, if it may become active: whether an event of the moments before that COMMIT is for it is left open
        (decision 7)."""
        chosen = self.one_of(which, "subscriptions")
        assert chosen is not None
        if change.active is not None or change.callback_url is not None:
            self.untouched.pop(chosen, None)
            pace = Pace.WHOLE
        known = self.crew.ledger.limits
        known[chosen] = max(known[chosen], change.max_retry_limit or 0)
        stage = partial(
            subscriptions.change_subscription,
            subscription_id=chosen,
            change=change,
            tenant_id=None,
            policy=AddressPolicy(),
            box=BOX,
        )
        self.act(Role.SUBSCRIPTIONS, 0, pace, stage, nothing)

    @rule(which=numbers, what=st.sampled_from(["pause", "pause", "deliver", "discard"]), pace=paces)
    def somebody_pauses_or_resumes(self, which: int, what: str, pace: Pace) -> None:
        chosen = self.one_of(which, "subscriptions")
        assert chosen is not None
        pause = partial(subscription_flow.pause_subscription, subscription_id=chosen, tenant_id=None)
        resume = partial(
            subscription_flow.resume_subscription,
            subscription_id=chosen,
            backlog="discard" if what == "discard" else "deliver",
            tenant_id=None,
        )
        self.crew.done["pauses" if what == "pause" else "resumes"] += 1
        self.act(Role.SUBSCRIPTIONS, 0, pace, pause if what == "pause" else resume, nothing)

    @rule(which=numbers)
    def a_receiver_answers_its_challenge(self, which: int) -> None:
        chosen = self.one_of(which, "subscriptions")
        assert chosen is not None
        self.untouched.pop(chosen, None)
        stage = partial(mark_verified, subscription_id=chosen, url=MOVED)
        self.act(Role.SUBSCRIPTIONS, 0, Pace.WHOLE, stage, nothing)

    @rule(which=numbers, is_lease=flags, everywhere=flags)
    def a_time_has_come(self, which: int, is_lease: bool, everywhere: bool) -> None:
        """A lease is over, or the wait of a saga, and with it that of a closed room."""
        if everywhere:
            self.do(self.crew.open_rooms())
        if is_lease:
            self.do(self.crew.end_leases(None if everywhere else self.one_of(which, "jobs", status="Leased")))
        else:
            waiting = self.one_of(which, "sagas", status="PendingRetry")
            self.do(self.crew.end_waits(None if everywhere else waiting))

    @precondition(lambda self: any(self.crew.memory.values()))
    @rule(who=numbers, which=numbers, is_late=flags)
    def jobs_change_hands(self, who: int, which: int, is_late: bool) -> None:
        """Their first worker is not told. It reports now, or later."""
        first = self.who_remembers(who)
        self.do(self.crew.end_leases())
        self.the_cleaner_ends_leases(Pace.WHOLE, 500)
        self.do(self.crew.look())
        self.a_worker_claims(which, which, all_that_wait=True, pace=Pace.WHOLE)
        if is_late and self.crew.memory[self.worker(first).name]:
            self.report(first, False, Pace.WHOLE)

    @precondition(lambda self: self.crew.ids("sagas", status="PendingRetry"))
    @rule(who=numbers)
    def retries_begin(self, who: int) -> None:
        """And the messages of the attempts before come a second time."""
        self.do(self.crew.end_waits())
        self.an_orchestrator_starts_attempts(who, 11, "first", Pace.WHOLE)
        stage = partial(orchestrate.apply_results, defaults=POLICY, job_ids=self.crew.ids("jobs"))
        self.act(Role.ORCHESTRATOR, who, Pace.WHOLE, stage, self.crew.ledger.applied_results)

    @precondition(lambda self: any(flow["breaker_opened_at"] for flow in self.crew.rows["flows"]))
    @rule(who=numbers, pace=paces)
    def a_probe_is_due(self, who: int, pace: Pace) -> None:
        self.do(self.crew.open_rooms())
        self.do(self.crew.end_waits())
        self.an_orchestrator_starts_attempts(who, 11, "first", pace)

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
        self.do(self.healthy.until_all_has_ended())
        self.do(self.nothing_was_lost())

    async def nothing_was_lost(self) -> None:
        """A subscription that nobody stopped or moved has a first saga of every event of its type."""
        await self.crew.check()
        assert await self.crew.findings(with_time=True) == []
        firsts = [saga for saga in self.crew.rows["sagas"] if saga["requeued_from"] is None]
        for subscription_id, kind in self.untouched.items():
            due = {event for event, draft in self.crew.ledger.events.items() if draft.event_type == kind}
            assert due == {saga["event_id"] for saga in firsts if saga["subscription_id"] == subscription_id}
        self.crew.count_ends()
