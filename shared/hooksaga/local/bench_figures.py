"""Results of a benchmark, and its payloads. No I/O."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds; null without measurements."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Result of a benchmark, as `--json` prints it.

    `failed`: deliveries that ended as dead letters. `accept_ms` only with a rate.
    """

    events: int
    subscriptions: int
    payload_bytes: int
    deliveries: int
    failed: int
    seconds: float
    deliveries_per_second: float
    latency_ms: Percentiles
    accept_ms: Percentiles | None
    processes: int


def percentiles(milliseconds: Sequence[float]) -> Percentiles:
    """Return nearest-rank percentiles: each is a measured value."""
    ordered = sorted(milliseconds)
    if not ordered:
        return Percentiles(None, None, None)
    p50, p95, p99 = (round(ordered[math.ceil(share * len(ordered)) - 1], 1) for share in (0.50, 0.95, 0.99))
    return Percentiles(p50, p95, p99)


def make_payload(number: int, size: int) -> str:
    """Return JSON of exactly this size, at least 2 bytes; unique per number if there is room for it."""
    head, tail = f'{{"number":{number},"filler":"', '"}'
    room = size - len(head) - len(tail)
    return f"{head}{'x' * room}{tail}" if room >= 0 else f'"{"x" * (size - 2)}"'


def make_body(event_type: str, payload: str) -> bytes:
    return f'{{"event_type":"{event_type}","payload":{payload}}}'.encode()
