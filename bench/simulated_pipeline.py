"""SQS mode in simulated time: traffic, the router, the orchestrator, and the two delivery queues with their copies.

Times are those of bench/cost_inputs.py, as `hooksaga cost` uses them: processor time by memory, waiting for the
database, 10 ms for each call to SQS. Left out: cold starts, the load of the database, lost messages, order.
"""

import heapq
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bench.simulated_orchestrator import (
    EPOCH,
    SQS_CALL_SECONDS,
    Orchestrator,
    Outcome,
    Saga,
    Subscription,
    Times,
)
from bench.simulated_sqs import Handler, Loop, Process, Source
from hooksaga.aws.deployment import Environment
from hooksaga.core.flow import Result
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import RetryPolicy
from hooksaga.cost.sources import Inputs
from hooksaga.cost.work import RECEIVER_SPREAD


@dataclass(frozen=True, slots=True)
class Traffic:
    """rate: events a second, each to fan_out subscriptions. One of them gets share_of_one of all deliveries, and its
    endpoint never answers from silent_from on. receiver_ms: median of an answer."""

    rate: float
    subscriptions: int
    fan_out: int
    seconds: float
    share_of_one: float = 0.05
    silent_from: float = 0
    receiver_ms: float = 200
    seed: int = 1


class Pipeline:
    """`run` simulates the traffic; afterwards `sagas` has every delivery that was offered. one: the subscription whose
    endpoint may be silent. timeouts: attempts that it did not answer."""

    def __init__(self, env: Environment, traffic: Traffic, inputs: Inputs) -> None:
        self.loop, self.sagas, self.timeouts = Loop(), list[Saga](), 0
        self._env, self._traffic, self._times = env, traffic, Times(env, inputs)
        self._random = random.Random(traffic.seed)  # noqa: S311
        self._numbers = itertools.count(1)
        self.subscriptions = [Subscription(number) for number in range(traffic.subscriptions)]
        self.one = self.subscriptions[0]
        self.one.silent_from = traffic.silent_from
        policy = RetryPolicy(
            env.max_retry_limit, env.base_delay_seconds, env.max_delay_seconds, env.retry_jitter
        )
        self.orchestrator = Orchestrator(self.loop, self._times, policy, self._send, self._deliver)
        quick = env.delivery.concurrency - env.slow_concurrency
        self.sources = {
            "routing": self._source(self._route, env.router.concurrency, "routing"),
            "orchestration": self._source(
                self.orchestrator.handle, env.orchestrator.concurrency, "orchestration"
            ),
            "delivery": self._source(self._post, quick, "delivery"),
            "delivery_slow": self._source(self._post, env.slow_concurrency, "delivery_slow"),
        }

    def _source(self, handler: Handler, copies: int, queue: str) -> Source:
        batching = self._env.batching(queue)
        return Source(
            self.loop,
            handler,
            copies=copies,
            batch=batching.size,
            window_seconds=batching.window_seconds,
            receive_seconds=SQS_CALL_SECONDS,
        )

    def run(self) -> None:
        self.loop.spawn(self._accept())
        self.loop.spawn(self.orchestrator.tick(self.subscriptions))
        self.loop.run(self._traffic.seconds)

    def _accept(self) -> Process:
        """Events at random moments. A part of them goes to the one, and all to some others."""
        traffic, others = self._traffic, self.subscriptions[1:]
        to_the_one = traffic.share_of_one * traffic.fan_out
        while True:
            yield self._random.expovariate(traffic.rate)
            hit = [self.one] if self._random.random() < to_the_one else []
            chosen = hit + self._random.sample(others, traffic.fan_out - len(hit))
            event = [Saga(0, next(self._numbers), one, self.loop.now) for one in chosen]
            self.sagas += event
            self.sources["routing"].put_later(SQS_CALL_SECONDS, [event])

    def _route(self, events: Sequence[Sequence[Saga]]) -> Process:
        yield self._times.of("router", len(events))
        subscriptions: dict[Subscription, None] = {}
        for saga in itertools.chain(*events):
            saga.due = self.loop.now
            heapq.heappush(saga.subscription.waiting, saga)
            subscriptions[saga.subscription] = None
        yield SQS_CALL_SECONDS
        self.sources["orchestration"].put(list(subscriptions))

    def _send(self, after: float, messages: Sequence[object]) -> None:
        self.sources["orchestration"].put_later(after, messages)

    def _deliver(self, sagas: Sequence[Saga], slow: bool) -> None:
        self.sources["delivery_slow" if slow else "delivery"].put(sagas)

    def _post(self, sagas: Sequence[Saga]) -> Process:
        """Claim, POST side by side, and record each result when it is there."""
        yield self._times.of("delivery", len(sagas)) / 2
        began = self.loop.now
        posts = sorted((self._answer_seconds(one.subscription), one.id, one) for one in sagas)
        for took, _, saga in posts:
            saga.arrived_at = began if took < self._env.http_timeout_seconds else None
        while posts:
            yield max(0.0, began + posts[0][0] - self.loop.now)
            done = [post for post in posts if began + post[0] <= self.loop.now] or posts[:1]
            posts = posts[len(done) :]
            yield self._times.of("delivery", len(done)) / 2 + SQS_CALL_SECONDS
            self.sources["orchestration"].put([self._outcome(saga, took, began) for took, _, saga in done])

    def _answer_seconds(self, subscription: Subscription) -> float:
        """Return how long the endpoint takes; a silent one runs into the timeout."""
        timeout = self._env.http_timeout_seconds
        if subscription.silent_from <= self.loop.now:
            self.timeouts += 1
            return timeout
        median = self._traffic.receiver_ms / 1000
        return min(self._random.lognormvariate(math.log(median), RECEIVER_SPREAD), timeout)

    def _outcome(self, saga: Saga, took: float, began: float) -> Outcome:
        error = None if saga.arrived_at is not None else ErrorCode.TIMEOUT_TOTAL.value
        leased_at = EPOCH + timedelta(seconds=began)
        return Outcome(saga, Result(saga.id, error, None, round(took * 1000), leased_at))
