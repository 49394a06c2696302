"""From events a month to invocations, messages and bytes: what a deployment does, before any price."""

from dataclasses import dataclass

from hooksaga.aws.deployment import Environment
from hooksaga.cost.sources import Inputs, Invocation

HOURS = 730
SECONDS = HOURS * 3600
TICKS_PER_FUNCTION = HOURS * 60
STEPS = {
    "router": "router",
    "orchestrator, new sagas": "orchestrator",
    "delivery": "delivery",
    "orchestrator, results": "orchestrator",
}
"""What messages are taken for, and the function that takes them."""

TICKING = ("router", "orchestrator", "lease_cleaner", "health_monitor", "admin")

FULL_BATCH = 10
BATCH_SECONDS = 0.1
"""A batch holds what arrives in this time, 1 to 10 messages."""

SQS_CALL_MS = 10
DATABASE_MS = 3
"""Of the network, for each invocation: about three round trips."""

MB_OF_A_VCPU = 1769
POLLERS, POLLS_PER_MINUTE, READ_QUEUES = 5, 3, 4
"""Lambda asks each queue of an event source mapping so often when nothing comes."""

HEADER_BYTES = 1400
"""Of a POST beside its payload: headers, TLS records, and a share of the handshakes."""

LOG_BYTES_PER_INVOCATION = 450
"""Lambda's own lines: START, END, REPORT."""


@dataclass(frozen=True, slots=True)
class Load:
    """events a month, subscriptions that take each, the share of attempts that fail, and how receivers are."""

    events: float
    fan_out: float = 1
    failure_rate: float = 0.02
    receiver_ms: float = 200
    days_kept: float = 30

    @property
    def deliveries(self) -> float:
        return self.events * self.fan_out

    def attempts(self, limit: int = 5) -> float:
        """A failed attempt is followed by another, until the limit."""
        return self.deliveries * sum(self.failure_rate**number for number in range(limit))


@dataclass(frozen=True, slots=True)
class Part:
    """Some invocations of one function in a month, and what each takes."""

    function: str
    invocations: float
    each: Invocation
    waits_ms: float = 0

    def gb_seconds(self, env: Environment) -> float:
        """The processor is a share of one with the memory; waiting is not."""
        memory_mb = env.functions[self.function].memory_mb
        share = min(1.0, memory_mb / MB_OF_A_VCPU)
        waiting = max(0.0, self.each.ms - self.each.cpu_ms)
        network = DATABASE_MS + SQS_CALL_MS * self.each.sqs_calls
        milliseconds = self.each.cpu_ms / share + waiting + network + self.waits_ms
        return self.invocations * milliseconds / 1000 * memory_mb / 1024


@dataclass(frozen=True, slots=True)
class Work:
    """All of a month. `queue_invocations` are those that take messages."""

    parts: tuple[Part, ...]
    queue_invocations: float
    sends: float
    attempts: float

    @property
    def invocations(self) -> float:
        return sum(part.invocations for part in self.parts)

    @property
    def sqs_requests(self) -> float:
        """A send is one; a batch is received by one and deleted by one; and asking goes on when nothing comes."""
        idle = POLLERS * POLLS_PER_MINUTE * 60 * HOURS * READ_QUEUES
        return self.sends + 2 * self.queue_invocations + idle


def work_of(load: Load, inputs: Inputs) -> Work:
    """Return the work of the functions for a number of events."""
    attempts = load.attempts()
    steps = _steps(load, attempts, inputs)
    ticks = [
        Part(name, TICKS_PER_FUNCTION, inputs.ticks.get(name, inputs.ticks["lease_cleaner"]))
        for name in TICKING
    ]
    ingest = Part("ingest", load.events, inputs.invocations["1"]["ingest"])
    retries = attempts - load.deliveries
    sends = retries + sum(part.invocations * part.each.sqs_calls for part in (ingest, *steps))
    return Work(
        parts=(ingest, *steps, *ticks),
        queue_invocations=sum(part.invocations for part in steps),
        sends=sends,
        attempts=attempts,
    )


def _steps(load: Load, attempts: float, inputs: Inputs) -> list[Part]:
    """A retry that is due begins as a saga did: by a message to the orchestrator."""
    return [
        _step(load, step, function, load.events if step == "router" else attempts, inputs)
        for step, function in STEPS.items()
    ]


def _step(load: Load, step: str, function: str, many: float, inputs: Inputs) -> Part:
    filled = _filled(many)
    each = _of_batch(inputs, step, filled)
    if step == "router":  # measured with a fan-out of 1
        each = each.model_copy(update={"sqs_calls": max(each.sqs_calls, load.fan_out * filled / FULL_BATCH)})
    return Part(function, many / filled, each, load.receiver_ms if step == "delivery" else 0)


def _filled(messages: float) -> float:
    """How many messages a batch holds at this pace."""
    return min(FULL_BATCH, max(1.0, messages / SECONDS * BATCH_SECONDS))


def _of_batch(inputs: Inputs, step: str, messages: float) -> Invocation:
    """On the line between a batch of 1 and one of 10, as they were measured."""
    one, full = (inputs.invocations[size][step] for size in ("1", "10"))
    share = (messages - 1) / (FULL_BATCH - 1)
    return Invocation(
        ms=one.ms + (full.ms - one.ms) * share,
        cpu_ms=one.cpu_ms + (full.cpu_ms - one.cpu_ms) * share,
        sqs_calls=one.sqs_calls + (full.sqs_calls - one.sqs_calls) * share,
    )
