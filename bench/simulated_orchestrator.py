"""The orchestrator of SQS mode in simulated time: it admits by the functions of core/flow.py, with rows in memory.

A call does what functions/orchestrator does: it applies results, starts what has room, tries again what another call
has locked, and sends one delayed message for each subscription that time opens. It holds the locks of flow rows as long
as a call waits for the database, which is careful: of its two statements only the second locks them.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from bench.simulated_sqs import Loop, Process
from hooksaga.adapters.queues import MAX_DELAY_SECONDS
from hooksaga.aws.deployment import Environment
from hooksaga.aws.orchestration import AGAIN_SECONDS, CLOCKS_APART_SECONDS, LEFT_PAUSES_SECONDS, MIN_WAIT
from hooksaga.core import flow
from hooksaga.core.flow import Flow, FlowSettings, Result, Room, room
from hooksaga.core.saga import JobFailed, RetryPolicy, SagaStatus, decide
from hooksaga.core.saga import Saga as SagaState
from hooksaga.cost.sources import Inputs
from hooksaga.cost.work import DATABASE_MS, SQS_CALL_MS, STEPS, Part, of_batch
from hooksaga.stages.start_plan import BATCH

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
SQS_CALL_SECONDS = SQS_CALL_MS / 1000
TICK_SECONDS = 60.0
RESULTS, NEW_SAGAS = "orchestrator, results", "orchestrator, new sagas"
PROBED = 100
"""A probe is one of the oldest so many."""


@dataclass(slots=True, order=True)
class Saga:
    """Times in seconds. arrived_at: of the POST that succeeds."""

    due: float
    id: int
    subscription: "Subscription" = field(compare=False)
    accepted_at: float = field(compare=False)
    attempts: int = field(default=0, compare=False)
    arrived_at: float | None = field(default=None, compare=False)


@dataclass(slots=True, eq=False)
class Subscription:
    """Its endpoint never answers from silent_from on. waiting: a heap, oldest due first."""

    number: int
    silent_from: float = math.inf
    settings: FlowSettings = field(default_factory=FlowSettings)
    flow: Flow = field(default_factory=Flow)
    waiting: list[Saga] = field(default_factory=list[Saga])
    in_progress: int = 0
    locked_until: float = -1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished job."""

    saga: Saga
    result: Result


class Times:
    """Seconds of a step with so many items, without its calls to SQS, in the functions of an environment."""

    def __init__(self, env: Environment, inputs: Inputs) -> None:
        self._env, self._inputs = env, inputs
        self._known: dict[tuple[str, int], float] = {}

    def of(self, step: str, items: int) -> float:
        key = (step, max(1, items))
        if key not in self._known:
            each = of_batch(self._inputs, *key).model_copy(update={"sqs_calls": 0.0})
            self._known[key] = Part(STEPS[step], 1, each).milliseconds(self._env) / 1000
        return self._known[key]

    def locked(self, step: str, items: int) -> float:
        """Seconds of it in which rows are locked."""
        each = of_batch(self._inputs, step, max(1, items))
        return (max(0.0, each.ms - each.cpu_ms) + DATABASE_MS) / 1000


Wakes = dict[Subscription, datetime]


class Orchestrator:
    """send: takes messages to itself after seconds. deliver: takes sagas with a job, of the quick or the slow queue."""

    def __init__(
        self,
        loop: Loop,
        times: Times,
        policy: RetryPolicy,
        send: Callable[[float, Sequence[object]], None],
        deliver: Callable[[Sequence[Saga], bool], None],
    ) -> None:
        self.dead_letters, self.late_results, self.locked = 0, 0, 0
        self._loop, self._times, self._policy = loop, times, policy
        self._send, self._deliver = send, deliver

    @property
    def _now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.now)

    def handle(self, messages: Sequence[object]) -> Process:
        """One invocation."""
        wakes: Wakes = {}
        named = [one for one in messages if isinstance(one, Subscription)]
        named += yield from self._apply([one for one in messages if isinstance(one, Outcome)], wakes)
        yield from self._start(named, wakes)
        if wakes:
            yield SQS_CALL_SECONDS
        for subscription, wake_at in wakes.items():
            seconds = math.ceil((wake_at - self._now).total_seconds() + CLOCKS_APART_SECONDS)
            if seconds <= MAX_DELAY_SECONDS:
                self._send(max(0, seconds), [subscription])

    def tick(self, subscriptions: Sequence[Subscription]) -> Process:
        """Every minute: look at every subscription with something waiting."""
        while True:
            yield TICK_SECONDS
            self._loop.spawn(self.handle([one for one in subscriptions if one.waiting]))

    def _apply(self, left: list[Outcome], wakes: Wakes) -> Process:
        """Apply results. Returns the subscriptions with more that is due."""
        due: list[Subscription] = []
        for pause in (*LEFT_PAUSES_SECONDS, 0):
            if not left:
                return due
            seconds = self._times.locked(RESULTS, len(left))
            yield self._times.of(RESULTS, len(left)) - seconds
            of_each: dict[Subscription, list[Outcome]] = {}
            for outcome in left:
                of_each.setdefault(outcome.saga.subscription, []).append(outcome)
            left = []
            for subscription, mine in of_each.items():
                if not self._apply_one(subscription, mine, seconds, wakes):
                    left += mine
                elif subscription.waiting and subscription.waiting[0].due <= self._loop.now:
                    due.append(subscription)
            yield seconds + (pause if left else 0)
        self.late_results += len(left)
        self._send(TICK_SECONDS, left)
        return due

    def _apply_one(
        self, subscription: Subscription, mine: Sequence[Outcome], seconds: float, wakes: Wakes
    ) -> bool:
        """Return False where the flow would change, and another call has locked its row."""
        before, now = subscription.flow, self._now
        results = [one.result for one in mine]
        after = flow.after_results(subscription.settings, before, results, subscription.in_progress, now)
        states = {one.saga.id: self._decided(one, before) for one in mine if one.result.error_code}
        retries = [one.next_attempt_at for one in states.values() if one.status is SagaStatus.PENDING_RETRY]
        if retries:
            after = replace(after, wake_at=min([*retries, after.wake_at] if after.wake_at else retries))
        if after != before:
            if subscription.locked_until > self._loop.now:
                self.locked += 1
                return False
            subscription.flow, subscription.locked_until = after, self._loop.now + seconds
            if after.wake_at is not None and after.wake_at != before.wake_at:
                wakes[subscription] = after.wake_at
        subscription.in_progress -= len(mine)
        for one in mine:
            if one.saga.id in states:
                self._wait_or_die(one.saga, states[one.saga.id])
        return True

    def _decided(self, outcome: Outcome, before: Flow) -> SagaState:
        saga, code = outcome.saga, outcome.result.error_code
        is_probe = before.breaker_opened_at is not None and before.probe_saga_id == saga.id
        state = SagaState(saga.id, SagaStatus.IN_PROGRESS, saga.attempts, EPOCH)
        return decide(state, JobFailed(str(code), None, is_probe), self._policy, self._now)

    def _wait_or_die(self, saga: Saga, state: SagaState) -> None:
        if state.status is SagaStatus.DEAD_LETTERED:
            self.dead_letters += 1
            return
        saga.attempts, saga.due = state.attempt_count, (state.next_attempt_at - EPOCH).total_seconds()
        heapq.heappush(saga.subscription.waiting, saga)

    def _start(self, subscriptions: Iterable[Subscription], wakes: Wakes) -> Process:
        todo = sorted(set(subscriptions), key=lambda one: one.number)
        pauses = list(LEFT_PAUSES_SECONDS)
        while todo:
            spent = self._times.of(NEW_SAGAS, len(todo)) - self._times.locked(NEW_SAGAS, len(todo))
            yield spent
            free = [one for one in todo if one.locked_until <= self._loop.now]
            again = [one for one in todo if one.locked_until > self._loop.now]
            self.locked += len(again)
            quick, slow = list[Saga](), list[Saga]()
            share = max(1, BATCH // max(1, len(free)))
            for subscription in free:
                started, has_more = self._start_one(subscription, share, wakes)
                (slow if subscription.flow.is_slow(self._now) else quick).extend(started)
                again += [subscription] if has_more else []
            items = max(len(free), len(quick) + len(slow))
            for subscription in free:
                subscription.locked_until = self._loop.now + self._times.locked(NEW_SAGAS, items)
            yield self._times.of(NEW_SAGAS, max(items, len(todo))) - spent
            if quick or slow:
                yield SQS_CALL_SECONDS
                self._deliver(quick, False)
                self._deliver(slow, True)
                pauses = list(LEFT_PAUSES_SECONDS)
            elif again and not pauses:
                break
            elif again:
                yield pauses.pop(0)
            todo = again
        wakes |= dict.fromkeys(todo, self._now + timedelta(seconds=AGAIN_SECONDS - CLOCKS_APART_SECONDS))

    def _start_one(self, subscription: Subscription, share: int, wakes: Wakes) -> tuple[list[Saga], bool]:
        """Return what was started of one subscription, and whether it has both room and more that is due."""
        before, now, started, has_more = subscription.flow, self._now, list[Saga](), False
        if not subscription.waiting:
            return started, has_more
        given = room(subscription.settings, before, now)
        after, wake_at = before, given.until and max(given.until, _time_of(subscription))
        if given.starts:
            starts = min(given.starts, share)
            started = self._take_due(subscription, starts, given)
            after = flow.after_start(subscription.settings, before, given, [one.id for one in started], now)
            wake_at = _time_of(subscription) if subscription.waiting else None
            if wake_at is not None and wake_at <= now:
                wake_at = flow.next_start_at(subscription.settings, after, now)
                has_more = wake_at is None and len(started) == starts < given.starts
        after = replace(after, wake_at=_spaced(wake_at, before.wake_at, now))
        subscription.flow = after
        if after.wake_at is not None and after.wake_at != before.wake_at:
            wakes[subscription] = after.wake_at
        return started, has_more

    def _take_due(self, subscription: Subscription, starts: int, given: Room) -> list[Saga]:
        waiting, chosen = subscription.waiting, list[Saga]()
        size = max(0, min(starts, given.in_flight - subscription.in_progress))
        while size and len(chosen) < (PROBED if given.probe else size):
            if not waiting or waiting[0].due > self._loop.now:
                break
            chosen.append(heapq.heappop(waiting))
        if given.probe:
            chosen.sort(key=lambda one: (one.attempts, one.due, one.id))
            for one in chosen[size:]:
                heapq.heappush(waiting, one)
            chosen = chosen[:size]
        subscription.in_progress += len(chosen)
        return chosen


def _time_of(subscription: Subscription) -> datetime:
    """When the first that waits is or was due."""
    return EPOCH + timedelta(seconds=subscription.waiting[0].due)


def _spaced(wake_at: datetime | None, planned: datetime | None, now: datetime) -> datetime | None:
    """Return a time that is MIN_WAIT ahead, or the planned one where that is not much later."""
    if wake_at is None:
        return None
    wake_at = max(wake_at, now + MIN_WAIT)
    return planned if planned is not None and now < planned < wake_at + MIN_WAIT else wake_at
