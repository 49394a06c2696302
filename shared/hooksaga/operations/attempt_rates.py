"""Attempts and latencies of a time range, part by part, at a cost that does not depend on the number of attempts.

A part is read in slices. Where a slice has more attempts than its sample, only the last ones are read, and the number
of the whole slice is estimated from the time between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.time_ranges import SLICES, Span, parts_of, slices_of
from hooksaga.core.time_ranges import TimeRange as TimeRange

SAMPLE = 60
"""Attempts that are read of each slice."""

LATENCY_SAMPLE = 6
ENDPOINT_SAMPLE = 50
"""Attempts, and failures, that are read of each part of one endpoint."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Attempts that ended within one part of a range. p50 and p95: end-to-end latency in milliseconds, None without
    deliveries. estimated: the counts are estimated from a sample."""

    span: Span
    completed: int
    failed: int
    estimated: bool
    p50: int | None = None
    p95: int | None = None


@dataclass(frozen=True, slots=True)
class _Sampled:
    place: int
    completed: int
    failed: int
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class _Latencies:
    part: int
    percentiles: list[int]


@dataclass(frozen=True, slots=True)
class _OfEndpoint:
    subscription_id: int
    place: int
    attempts: int
    oldest: datetime | None
    failed: int
    oldest_failed: datetime | None


async def read_rates(connection: Connection, span: Span, wanted: TimeRange) -> list[Rate]:
    """Return the rates of all attempts, for each part of the span."""
    parts = parts_of(span, wanted.step)
    slices = slices_of(parts)
    params = {**_edges(slices), "sample": SAMPLE}
    sampled = await fetch_rows(connection, _query("attempts_by_slice"), params, _Sampled)
    params = {
        **_edges(slices),
        "parts": [place // SLICES for place in range(len(slices))],
        "sample": LATENCY_SAMPLE,
    }
    rows = await fetch_rows(connection, _query("latencies"), params, _Latencies)
    latencies = {row.part: row.percentiles for row in rows}
    return [
        _rate(
            part,
            slices[place * SLICES :],
            sampled[place * SLICES : (place + 1) * SLICES],
            latencies.get(place),
        )
        for place, part in enumerate(parts)
    ]


def _rate(
    part: Span, slices: Sequence[Span], sampled: Sequence[_Sampled], percentiles: list[int] | None
) -> Rate:
    shares = [
        _share(one, row.completed + row.failed, row.oldest, SAMPLE)
        for one, row in zip(slices, sampled, strict=False)
    ]
    completed = sum(round(row.completed / share) for row, share in zip(sampled, shares, strict=True))
    failed = sum(round(row.failed / share) for row, share in zip(sampled, shares, strict=True))
    p50, p95 = percentiles or (None, None)
    return Rate(part, completed, failed, min(shares) < 1, p50, p95)


async def read_endpoint_rates(
    connection: Connection, subscription_ids: Sequence[int], span: Span, wanted: TimeRange
) -> dict[int, list[Rate]]:
    """Return the rates of some subscriptions, by id."""
    parts = parts_of(span, wanted.endpoint_step)
    params = {**_edges(parts), "ids": list(subscription_ids), "sample": ENDPOINT_SAMPLE}
    rates: dict[int, list[Rate]] = {one: [] for one in subscription_ids}
    for row in await fetch_rows(connection, _query("attempts_of_endpoints"), params, _OfEndpoint):
        part = parts[row.place]
        share = _share(part, row.attempts, row.oldest, ENDPOINT_SAMPLE)
        failed_share = _share(part, row.failed, row.oldest_failed, ENDPOINT_SAMPLE)
        attempts, failed = round(row.attempts / share), round(row.failed / failed_share)
        completed = max(attempts - failed, 0)
        rates[row.subscription_id].append(Rate(part, completed, failed, min(share, failed_share) < 1))
    return rates


def _edges(spans: Sequence[Span]) -> dict[str, Any]:
    return {"begins": [one.begin for one in spans], "ends": [one.end for one in spans]}


def _share(span: Span, seen: int, oldest: datetime | None, sample: int) -> float:
    """Return the share of the span that a sample of its newest attempts covers: 1 if it has all of them."""
    if seen < sample or oldest is None:
        return 1.0
    return max(min((span.end - oldest) / (span.end - span.begin), 1.0), 1e-4)


def _query(name: str) -> Any:
    return load_queries("console")[name]
