"""One event to 10,000 subscriptions, and what the ingest of others notices of it.

    .venv/bin/python -m bench.fan_out [--subscriptions 10000] [--rate 200] [--seconds 15] [--rounds 3] [--json]

Each round posts events of another type at a steady rate twice: alone, and with the one event a second after the
start. Compared are requests that were answered, and deliveries of the others that arrived, between the 202 of the one
event and the last of its deliveries (a second at least), with the same stretch of the run alone.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.figures import ms, shown, times
from bench.load import Loaded, MeasurementFailed, run_load, running_load
from bench.place import Place, parser_of, report, run_at_new_place
from bench.receiver import Deliveries
from hooksaga.local.api_client import ApiClient
from hooksaga.local.bench_figures import Percentiles, percentiles

WIDE, OTHER = "bench.wide", "bench.other"
OTHER_PATH = "/ok/other"
LEAD_SECONDS = 1.0
MIN_SECONDS = 1.0
"""A stretch that is compared is no shorter: a few requests have no percentiles."""


@dataclass(frozen=True, slots=True)
class Others:
    """Of the other events in a stretch of time: from due to 202, and from 202 to the receiver."""

    accept_ms: Percentiles
    latency_ms: Percentiles


@dataclass(frozen=True, slots=True)
class Round:
    """seconds: from the one event's 202 to the last of its deliveries."""

    deliveries: int
    seconds: float
    alone: Others
    beside: Others


@dataclass(frozen=True, slots=True)
class FanOut:
    """Medians of the rounds. accept_times and latency_times: the p95 of others, in times of the run alone."""

    subscriptions: int
    rate: float
    seconds: float
    deliveries_per_second: float
    accept_p95_ms: float | None
    accept_times: float
    latency_p95_ms: float | None
    latency_times: float
    rounds: list[Round]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--subscriptions", type=int, default=10_000, help="that take the one event")
    parser.add_argument("--rate", type=float, default=200, help="other events a second")
    parser.add_argument("--seconds", type=float, default=15, help="of other events in each run")
    parser.add_argument("--rounds", type=int, default=3)
    run_at_new_place(parser, measure, table)


def measure(place: Place, subscriptions: int, rate: float, *, seconds: float, rounds: int) -> FanOut:
    place.subscribe([(WIDE, f"/ok/wide/{number}") for number in range(subscriptions)])
    place.subscribe([(OTHER, OTHER_PATH)])
    _settle(place, run_load(_others(place, rate, 1)), 0)
    done = [_round(place, subscriptions, rate, seconds) for _ in range(rounds)]
    took = statistics.median(one.seconds for one in done)
    return FanOut(
        subscriptions,
        rate,
        round(took, 3),
        round(subscriptions / took, 1),
        _median([one.beside.accept_ms.p95 for one in done]),
        _median_times([(one.beside.accept_ms.p95, one.alone.accept_ms.p95) for one in done]),
        _median([one.beside.latency_ms.p95 for one in done]),
        _median_times([(one.beside.latency_ms.p95, one.alone.latency_ms.p95) for one in done]),
        done,
    )


def _others(place: Place, rate: float, seconds: float) -> Any:
    return place.load(OTHER, count=max(1, int(rate * seconds)), rate=rate, connections=256)


def _settle(place: Place, loaded: Loaded, more: int) -> Deliveries:
    """Everything has arrived; what did."""
    place.receiver.wait_for(len(loaded.accepted_at) + more)
    return place.receiver.take()


def _round(place: Place, subscriptions: int, rate: float, seconds: float) -> Round:
    report(f"{rate:,.0f} events a second alone, then beside one event to {subscriptions} subscriptions")
    load = _others(place, rate, seconds)
    alone = run_load(load)
    arrived_alone = _settle(place, alone, 0)
    with running_load(load) as running:
        began = running.began()
        time.sleep(max(0.0, began + min(LEAD_SECONDS, seconds / 4) - time.monotonic()))
        posted_at = _post_wide(place)
        beside = running.result()
    arrived = _settle(place, beside, subscriptions)
    last = max(at for (path, _), at in arrived.items() if path != OTHER_PATH)
    since, until = posted_at - beside.started_at, max(last, posted_at + MIN_SECONDS) - beside.started_at
    return Round(
        subscriptions,
        round(last - posted_at, 3),
        _between(alone, arrived_alone, since, until),
        _between(beside, arrived, since, until),
    )


def _post_wide(place: Place) -> float:
    """When it was known to be accepted. From this process: starting another one takes longer than the stretch."""
    api = ApiClient(place.url, place.key)
    api.call("POST", "/v1/events", json={"event_type": WIDE, "payload": {"number": 1}})
    return time.monotonic()


def _between(loaded: Loaded, arrived: Mapping[tuple[str, str], float], since: float, until: float) -> Others:
    first, last = loaded.started_at + since, loaded.started_at + until
    accepted_at = loaded.accepted_at
    latencies = [
        max(0.0, at - accepted_at[event_id]) * 1000
        for (path, event_id), at in arrived.items()
        if path == OTHER_PATH and first <= accepted_at[event_id] <= last
    ]
    accepts = loaded.milliseconds(first, last)
    if not accepts or not latencies:
        raise MeasurementFailed("no other event was posted meanwhile; give a higher --rate or more --seconds")
    return Others(percentiles(accepts), percentiles(latencies))


def _median(values: list[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    return round(statistics.median(measured), 1) if measured else None


def _median_times(pairs: list[tuple[float | None, float | None]]) -> float:
    return round(statistics.median(times(value or 0, comparison or 0) for value, comparison in pairs), 2)


def table(result: FanOut) -> str:
    rows = [
        (
            f"{one.deliveries:,}",
            f"{one.seconds:.1f}",
            *(ms(run.accept_ms.p95) for run in (one.alone, one.beside)),
            *(ms(run.latency_ms.p95) for run in (one.alone, one.beside)),
        )
        for one in result.rounds
    ]
    columns = ("deliveries", "seconds", "202 p95 ms alone", "beside", "arrival p95 ms alone", "beside")
    return (
        shown(columns, rows)
        + f"\nmedian: {result.deliveries_per_second:,.0f} deliveries a second; p95 of others' 202 is"
        f" {result.accept_times} times that alone, of their arrival {result.latency_times} times"
    )


if __name__ == "__main__":
    main()
