"""Work of a deployment for a number of events per month: invocations, messages and bytes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TypeVar

from hooksaga.aws.deployment import Environment
from hooksaga.aws.latency import MOST_WITHOUT_WINDOW, Batching
from hooksaga.cost.sources import Inputs, Invocation, Made

Measured = TypeVar("Measured", Invocation, Made)

HOURS = 730
SECONDS = HOURS * 3600
TICKS_PER_FUNCTION = HOURS * 60
STEPS = {
    "router": "router",
    "orchestrator, new sagas": "orchestrator",
    "delivery": "delivery",
    "orchestrator, results": "orchestrator",
}
"""Steps by messages, and the function of each."""

QUEUES = {
    "router": "routing",
    "orchestrator, new sagas": "orchestration",
    "delivery": "delivery",
    "orchestrator, results": "orchestration",
}
TICKING = ("router", "orchestrator", "lease_cleaner", "health_monitor", "retention", "admin")

BATCH_SECONDS = 0.1
"""Without a window, a batch contains the messages of this time, 1 to 10."""

SQS_CALL_MS = 10
DATABASE_MS = 3
"""Network time per invocation: about three round trips."""

MB_OF_A_VCPU = 1769
POLLERS, POLLS_PER_MINUTE, READ_QUEUES = 5, 3, 5
"""Polls of each queue while it is empty. With a window, each poller gathers a batch of its own."""

RECEIVER_SPREAD = 0.6
"""Standard deviation of the logarithm of an answer's time: one answer in a hundred takes four times the median."""

HEADER_BYTES = 1400
"""Overhead of a POST: headers, TLS records, and a share of the handshakes."""

LOG_BYTES_PER_INVOCATION = 450
"""Bytes of Lambda's own log lines: START, END, REPORT."""


@dataclass(frozen=True, slots=True)
class Load:
    """Events per month, subscriptions per event, share of failed attempts, and properties of the endpoints.

    peak: events a second in the busiest minute, in times of the month's average. days: after how many days the stored
    data is looked at; retention may delete earlier. receiver_ms: median of an answer.
    """

    events: float
    fan_out: float = 1
    failure_rate: float = 0.02
    receiver_ms: float = 200
    days: float = 30
    peak: float = 5

    @property
    def deliveries(self) -> float:
        return self.events * self.fan_out

    @property
    def events_per_second(self) -> float:
        return self.events / SECONDS

    def attempts(self, limit: int = 5) -> float:
        """Return the number of attempts: failed ones are retried, up to the limit."""
        return self.deliveries * sum(self.failure_rate**number for number in range(limit))


@dataclass(frozen=True, slots=True)
class Part:
    """Invocations of one function per month, and the cost of each. receives: calls that fetch the messages."""

    function: str
    invocations: float
    each: Invocation
    waits_ms: float = 0
    filled: float = 1
    receives: float = 0

    def milliseconds(self, env: Environment) -> float:
        """Return the time of one: the processor share depends on the memory, and waiting uses no processor."""
        share = min(1.0, env.functions[self.function].memory_mb / MB_OF_A_VCPU)
        waiting = max(0.0, self.each.ms - self.each.cpu_ms)
        network = DATABASE_MS + SQS_CALL_MS * self.each.sqs_calls
        return self.each.cpu_ms / share + waiting + network + self.waits_ms

    def gb_seconds(self, env: Environment) -> float:
        """Return the memory time of all."""
        memory_mb = env.functions[self.function].memory_mb
        return self.invocations * self.milliseconds(env) / 1000 * memory_mb / 1024

    def deletes(self) -> float:
        """Return the calls that delete the messages: ten in each."""
        return self.invocations * math.ceil(self.filled / MOST_WITHOUT_WINDOW) if self.receives else 0


@dataclass(frozen=True, slots=True)
class Work:
    """All work of a month: of ingest, of the steps by messages, and of the ticks."""

    ingest: Part
    steps: tuple[Part, ...]
    ticks: tuple[Part, ...]
    sends: float
    attempts: float

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.ingest, *self.steps, *self.ticks)

    @property
    def invocations(self) -> float:
        return sum(part.invocations for part in self.parts)

    @property
    def sqs_requests(self) -> float:
        """Return the number of SQS requests: sends, receives, deletes, and polls of empty queues."""
        idle = POLLERS * POLLS_PER_MINUTE * 60 * HOURS * READ_QUEUES
        return self.sends + sum(part.receives + part.deletes() for part in self.steps) + idle


def work_of(load: Load, env: Environment, inputs: Inputs) -> Work:
    attempts = load.attempts()
    steps = steps_of(load, env, inputs)
    ticks = tuple(
        Part(name, TICKS_PER_FUNCTION, inputs.ticks.get(name, inputs.ticks["lease_cleaner"]))
        for name in TICKING
    )
    ingest = ingest_of(load, inputs)
    retries = attempts - load.deliveries
    sends = retries + sum(part.invocations * part.each.sqs_calls for part in (ingest, *steps))
    return Work(ingest, steps, ticks, sends, attempts)


def ingest_of(load: Load, inputs: Inputs) -> Part:
    """Events come one by one."""
    return Part("ingest", load.events, inputs.invocations["1"]["ingest"])


def steps_of(load: Load, env: Environment, inputs: Inputs) -> tuple[Part, ...]:
    """A due retry begins like a saga: with a message to the orchestrator."""
    attempts = load.attempts()
    return tuple(
        _step(load, step, load.events if step == "router" else attempts, env, inputs) for step in STEPS
    )


def _step(load: Load, step: str, many: float, env: Environment, inputs: Inputs) -> Part:
    batching = env.batching(QUEUES[step])
    per_second = many / SECONDS
    filled = filled_batch(per_second, batching)
    each = of_batch(inputs, step, filled)
    if step == "router":  # measured with a fan-out of 1
        calls = load.fan_out * filled / MOST_WITHOUT_WINDOW
        each = each.model_copy(update={"sqs_calls": max(each.sqs_calls, calls)})
    waits_ms = slowest_ms(load.receiver_ms, filled) if step == "delivery" else 0
    receives = many / filled_batch(per_second, Batching(MOST_WITHOUT_WINDOW))
    return Part(STEPS[step], many / filled, each, waits_ms, filled, receives)


def filled_batch(per_second: float, batching: Batching) -> float:
    """Return the messages in a batch, at a constant rate: those of BATCH_SECONDS, or of the window of one poller."""
    gathered = max(per_second * BATCH_SECONDS, per_second * batching.window_seconds / POLLERS)
    return min(batching.size, max(1.0, gathered))


@cache
def slowest_ms(median_ms: float, batch: float) -> float:
    """Return how long the slowest of a batch of receivers takes, on average: a copy waits for it."""
    if not median_ms:
        return 0.0
    normal, step = NormalDist(), 0.02
    steps = [number * step for number in range(int(30 / step))]
    above = sum(1 - normal.cdf(math.log(times) / RECEIVER_SPREAD) ** batch for times in steps[1:])
    return median_ms * step * (above + 0.5)


def of_batch(inputs: Inputs, step: str, messages: float) -> Invocation:
    """Return an invocation for a batch of so many, on the line through the two nearest measurements."""
    below, above = nearest_sizes(inputs.invocations, messages)
    low, high = (inputs.invocations[str(size)][step] for size in (below, above))
    return on_the_line(low, high, (messages - below) / (above - below))


def nearest_sizes(measured: Iterable[str], batch: float) -> tuple[int, int]:
    """Return the sizes of batches below and above this one, or the two nearest, of those that were measured."""
    sizes = sorted(map(int, measured))
    above = next((size for size in sizes[1:] if size >= batch), sizes[-1])
    return sizes[sizes.index(above) - 1], above


def on_the_line(low: Measured, high: Measured, share: float) -> Measured:
    """Return the measurement at this share of the way from one to the other, field by field."""
    ends = zip(low, high, strict=True)
    return type(low)(**{name: first + (second - first) * share for (name, first), (_, second) in ends})
