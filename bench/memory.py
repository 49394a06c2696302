"""Resident memory of `hooksaga up` over 500,000 deliveries.

    .venv/bin/python -m bench.memory [--deliveries 500000] [--round 20000] [--json]

Events go in through the API in batches, in rounds: each is delivered before the next begins, so that no round depends
on a queue that only grows. Memory is that of the process that delivers, without PostgreSQL, looked at 50 times a
second. The slope is a straight line through the ends of the rounds of the second half: what is still growing when
caches and pools are full.
"""

import statistics
from dataclasses import dataclass

from bench.figures import shown
from bench.load import running_load
from bench.place import Place, parser_of, report, run_at_new_place
from bench.processor import resident_of_tree

EVENT_TYPE = "bench.memory"
BATCH = 100
MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class Round:
    """deliveries: since the start. resident_mb: at its end, nothing under way; peak_mb: the most during it."""

    deliveries: int
    resident_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Memory:
    """first and last: at the ends of the first and the last round."""

    deliveries: int
    first_mb: float
    last_mb: float
    peak_mb: float
    mb_per_100_000: float
    rounds: list[Round]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--deliveries", type=int, default=500_000)
    parser.add_argument(
        "--round", dest="of_a_round", metavar="ROUND", type=int, default=20_000, help="deliveries of a round"
    )
    run_at_new_place(parser, measure, table)


def measure(place: Place, deliveries: int, *, of_a_round: int) -> Memory:
    place.subscribe([(EVENT_TYPE, "/ok/memory")])
    rounds: list[Round] = []
    while (done := rounds[-1].deliveries if rounds else 0) < deliveries:
        rounds.append(_round(place, done, min(of_a_round, deliveries - done)))
        report(f"{rounds[-1].deliveries:,} deliveries: {rounds[-1].resident_mb:.1f} MB")
    return Memory(
        deliveries,
        rounds[0].resident_mb,
        rounds[-1].resident_mb,
        max(one.peak_mb for one in rounds),
        slope(rounds[len(rounds) // 2 :]),
        rounds,
    )


def _round(place: Place, done: int, count: int) -> Round:
    seen: list[int] = []
    with running_load(place.load(EVENT_TYPE, count=count, batch=BATCH, connections=8)) as load:
        load.began()
        place.receiver.wait_for(count, during=lambda: seen.append(resident_of_tree(place.pid)))
        load.result()
    place.receiver.take()
    place.wait_until_delivered()
    seen.append(resident_of_tree(place.pid))
    return Round(done + count, round(seen[-1] / MEGABYTE, 1), round(max(seen) / MEGABYTE, 1))


def slope(rounds: list[Round]) -> float:
    """Megabytes per 100,000 deliveries; 0 where there are no two rounds to compare."""
    if len(rounds) < 2:
        return 0.0
    line = statistics.linear_regression(
        [one.deliveries for one in rounds], [one.resident_mb for one in rounds]
    )
    return round(line.slope * 100_000, 2)


def table(result: Memory) -> str:
    rows = [(f"{one.deliveries:,}", f"{one.resident_mb:.1f}", f"{one.peak_mb:.1f}") for one in result.rounds]
    return (
        shown(("deliveries", "resident MB", "peak MB"), rows)
        + f"\nsecond half: {result.mb_per_100_000:+.2f} MB for each 100,000 deliveries"
    )


if __name__ == "__main__":
    main()
