"""Work of a deployment for a number of events per month: invocations, messages and bytes."""

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
"""Steps by messages, and the function of each."""

TICKING = ("router", "orchestrator", "lease_cleaner", "health_monitor", "retention", "admin")

FULL_BATCH = 10
BATCH_SECONDS = 0.1
"""A batch contains the messages of this time, 1 to 10."""

SQS_CALL_MS = 10
DATABASE_MS = 3
"""Network time per invocation: about three round trips."""

MB_OF_A_VCPU = 1769
POLLERS, POLLS_PER_MINUTE, READ_QUEUES = 5, 3, 4
"""Polls of each queue while it is empty."""

HEADER_BYTES = 1400
"""Overhead of a POST: headers, TLS records, and a share of the handshakes."""

LOG_BYTES_PER_INVOCATION = 450
"""Bytes of Lambda's own log lines: START, END, REPORT."""


@dataclass(frozen=True, slots=True)
class Load:
    """Events per month, subscriptions per event, share of failed attempts, and properties of the endpoints."""

    events: float
    fan_out: float = 1
    failure_rate: float = 0.02
    receiver_ms: float = 200
    days_kept: float = 30

    @property
    def deliveries(self) -> float:
        return self.events * self.fan_out

    def attempts(self, limit: int = 5) -> float:
        """Return the number of attempts: failed ones are retried, up to the limit."""
        return self.deliveries * sum(self.failure_rate**number for number in range(limit))


@dataclass(frozen=True, slots=True)
class Part:
    """Invocations of one function per month, and the cost of each."""

    function: str
    invocations: float
    each: Invocation
    waits_ms: float = 0

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


@dataclass(frozen=True, slots=True)
class Work:
    """All work of a month. `queue_invocations` are those started by messages."""

    parts: tuple[Part, ...]
    queue_invocations: float
    sends: float
    attempts: float

    @property
    def invocations(self) -> float:
        return sum(part.invocations for part in self.parts)

    @property
    def sqs_requests(self) -> float:
        """Return the number of SQS requests: sends, one receive and one delete per batch, and polls of empty queues."""
        idle = POLLERS * POLLS_PER_MINUTE * 60 * HOURS * READ_QUEUES
        return self.sends + 2 * self.queue_invocations + idle


def work_of(load: Load, inputs: Inputs) -> Work:
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
    """A due retry begins like a saga: with a message to the orchestrator."""
    return [
        _step(load, step, function, load.events if step == "router" else attempts, inputs)
        for step, function in STEPS.items()
    ]


def _step(load: Load, step: str, function: str, many: float, inputs: Inputs) -> Part:
    filled = _filled(many)
    each = of_batch(inputs, step, filled)
    if step == "router":  # measured with a fan-out of 1
        each = each.model_copy(update={"sqs_calls": max(each.sqs_calls, load.fan_out * filled / FULL_BATCH)})
    return Part(function, many / filled, each, load.receiver_ms if step == "delivery" else 0)


def _filled(messages: float) -> float:
    return min(FULL_BATCH, max(1.0, messages / SECONDS * BATCH_SECONDS))


def of_batch(inputs: Inputs, step: str, messages: float) -> Invocation:
    """Return an invocation for a batch of so many, on the line through the measurements for 1 and for 10."""
    one, full = (inputs.invocations[size][step] for size in ("1", "10"))
    share = (messages - 1) / (FULL_BATCH - 1)
    return Invocation(
        ms=one.ms + (full.ms - one.ms) * share,
        cpu_ms=one.cpu_ms + (full.cpu_ms - one.cpu_ms) * share,
        sqs_calls=one.sqs_calls + (full.sqs_calls - one.sqs_calls) * share,
    )
