"""Twenty subscriptions, of which one takes every request and never answers: what the other nineteen notice.

    .venv/bin/python -m bench.noisy_neighbour [--rate 200] [--seconds 40] [--settle 10] [--rounds 2] [--json]
    .venv/bin/python -m bench.noisy_neighbour --half [--events 20000] [--batch 20]
    .venv/bin/python -m bench.noisy_neighbour --sqs [--rate 20] [--settle 30]

Each subscription has an event type of its own, and events are posted at a steady rate, one type after the other.
Runs with twenty good receivers and runs with one black hole alternate, each on an empty database. Latency goes from
the 202 to the arrival at the receiver. Events of the first seconds are shown apart: the first attempts to a black hole
run into their timeout only after 15 s. --half measures the throughput first, and posts half of it. --sqs: through the
Lambda functions and the queue emulator, each function in processes of its own.
"""

import argparse
import statistics
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial

from bench.figures import ms, shown, times
from bench.load import MeasurementFailed, run_load
from bench.place import Place, new_place, parser_of, report, run_command
from hooksaga.local.bench_figures import Percentiles, percentiles

SUBSCRIPTIONS = 20
NEIGHBOURS = "/ok/neighbour/"
AT_ONCE = 100
WARM_UP_EVENTS = 400
"""Posted at once to the nineteen before each run: connections and, with --sqs, the processes of functions are there."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Results of the nineteen in one run. settling_ms: of events of the first seconds; latency_ms: of all others."""

    deliveries: int
    lost: int
    settling_ms: Percentiles
    latency_ms: Percentiles


@dataclass(frozen=True, slots=True)
class Noise:
    """Medians of the rounds. times: the p95 beside a black hole, in times of the p95 without one. lost: beside it."""

    rate: float
    quiet_p95_ms: float
    noisy_p95_ms: float
    times: float
    lost: int
    quiet: list[Neighbours]
    noisy: list[Neighbours]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rate", type=float, default=200, help="events a second")
    parser.add_argument(
        "--half", action="store_true", help="at half of the throughput, which is measured first"
    )
    parser.add_argument("--events", type=int, default=20_000, help="from which the throughput is measured")
    parser.add_argument("--batch", type=int, default=1, help="events in a request")
    parser.add_argument(
        "--sqs", action="store_true", help="through the Lambda functions and the queue emulator"
    )
    parser.add_argument("--seconds", type=float, default=40, help="of each run")
    parser.add_argument("--settle", type=float, default=10, help="first seconds, which are shown apart")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind")
    options = parser.parse_args()
    run_command(lambda: _compare(options), table, json=options.json)


def _compare(options: argparse.Namespace) -> Noise:
    place = partial(new_place, "--sqs", program="bench.up") if options.sqs else new_place
    rate, runs = options.rate, dict[bool, list[Neighbours]]({False: [], True: []})
    if options.half:
        with place() as running:
            rate = round(throughput(running, options.events) / 2, 1)
    for _ in range(options.rounds):
        for noisy in (False, True):
            with place() as running:
                runs[noisy].append(
                    measure(
                        running,
                        rate,
                        seconds=options.seconds,
                        settle=options.settle,
                        noisy=noisy,
                        batch=options.batch,
                    )
                )
    return compared(rate, runs[False], runs[True])


def throughput(place: Place, events: int) -> float:
    """Deliveries a second to twenty good receivers, of events that are posted at once."""
    types = _subscribe(place, "at-once", noisy=False)
    loaded = run_load(place.load(*types, count=events, batch=AT_ONCE, connections=8))
    place.receiver.wait_for(events)
    rate = events / (time.monotonic() - loaded.started_at)
    place.receiver.take()
    report(f"throughput: {rate:,.0f} deliveries a second")
    return rate


def measure(
    place: Place, rate: float, *, seconds: float, settle: float, noisy: bool, batch: int = 1
) -> Neighbours:
    """One run. The black hole's deliveries are given up at its end."""
    report(f"{rate:,.0f} events a second to 20 subscriptions" + (", one a black hole" if noisy else ""))
    types = _subscribe(place, "noisy" if noisy else "quiet", noisy=noisy)
    run_load(place.load(*types[1:], count=WARM_UP_EVENTS, batch=AT_ONCE, connections=8))
    place.receiver.wait_for(WARM_UP_EVENTS)
    place.receiver.take()
    load = place.load(*types, count=int(rate * seconds), rate=rate, batch=batch, connections=256)
    loaded = run_load(load)
    accepted_at, first = loaded.accepted_at, loaded.started_at + settle
    wanted = len(accepted_at) - -(-len(accepted_at) // SUBSCRIPTIONS)
    with suppress(MeasurementFailed):  # what did not come is counted
        place.receiver.wait_for(wanted, of=NEIGHBOURS)
    came = {
        event_id: at for (path, event_id), at in place.receiver.take().items() if path.startswith(NEIGHBOURS)
    }
    waits = [(accepted_at[one] >= first, max(0.0, at - accepted_at[one]) * 1000) for one, at in came.items()]
    settled = [wait for is_settled, wait in waits if is_settled]
    settling = [wait for is_settled, wait in waits if not is_settled]
    return Neighbours(len(settled), wanted - len(came), percentiles(settling), percentiles(settled))


def _subscribe(place: Place, label: str, *, noisy: bool) -> list[str]:
    """Return the event types of the twenty; the first is the black hole's."""
    types = [f"bench.{label}.{number}" for number in range(SUBSCRIPTIONS)]
    neighbours = [f"{NEIGHBOURS}{label}/{number}" for number in range(1, SUBSCRIPTIONS)]
    first = "/hang" if noisy else f"/ok/{label}"
    place.subscribe(list(zip(types, [first, *neighbours], strict=True)))
    return types


def compared(rate: float, quiet: list[Neighbours], noisy: list[Neighbours]) -> Noise:
    calm, loud = (statistics.median(run.latency_ms.p95 or 0 for run in runs) for runs in (quiet, noisy))
    lost = sum(run.lost for run in noisy)
    return Noise(rate, round(calm, 1), round(loud, 1), times(loud, calm), lost, quiet, noisy)


def table(result: Noise) -> str:
    rows = [
        (
            kind,
            f"{run.deliveries:,}",
            run.lost,
            *map(ms, astuple(run.settling_ms)[:2]),
            *map(ms, astuple(run.latency_ms)),
        )
        for kind, runs in (("twenty good", result.quiet), ("one black hole", result.noisy))
        for run in runs
    ]
    columns = ("receivers", "deliveries", "lost", "first p50 ms", "p95 ms", "then p50 ms", "p95 ms", "p99 ms")
    return (
        shown(columns, rows)
        + f"\nat {result.rate:,.0f} events a second; p95 of the others beside a black hole: {result.times} times"
        f" that without; {result.lost} of theirs lost"
    )


if __name__ == "__main__":
    main()
