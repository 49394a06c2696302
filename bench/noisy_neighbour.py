"""Twenty subscriptions, of which one takes every request and never answers: what the other nineteen notice.

    .venv/bin/python -m bench.noisy_neighbour [--rate 200] [--seconds 40] [--settle 10] [--rounds 2] [--json]

Each subscription has an event type of its own, and events are posted at a steady rate, one type after the other.
Runs with twenty good receivers and runs with one black hole alternate, each on an empty database. Latency goes from
the 202 to the arrival at the receiver; events of the first seconds are left out, in which the black hole fills the
places that it gets.
"""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from bench.figures import ms, shown, times
from bench.load import run_load
from bench.place import Place, new_place, parser_of, report, run_command
from hooksaga.local.bench_figures import Percentiles, percentiles

SUBSCRIPTIONS = 20
NEIGHBOURS = "/ok/neighbour/"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Results of the nineteen in one run."""

    deliveries: int
    latency_ms: Percentiles


@dataclass(frozen=True, slots=True)
class Noise:
    """Medians of the rounds. times: the p95 beside a black hole, in times of the p95 without one."""

    rate: float
    quiet_p95_ms: float
    noisy_p95_ms: float
    times: float
    quiet: list[Neighbours]
    noisy: list[Neighbours]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rate", type=float, default=200, help="events a second")
    parser.add_argument("--seconds", type=float, default=40, help="of each run")
    parser.add_argument("--settle", type=float, default=10, help="seconds of these that are left out")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind")
    options = parser.parse_args()

    def run() -> Any:
        runs: dict[bool, list[Neighbours]] = {False: [], True: []}
        for _ in range(options.rounds):
            for noisy in (False, True):
                with new_place() as place:
                    runs[noisy].append(
                        measure(
                            place, options.rate, seconds=options.seconds, settle=options.settle, noisy=noisy
                        )
                    )
        return asdict(compared(options.rate, runs[False], runs[True]))

    run_command(run, table, json=options.json)


def measure(place: Place, rate: float, *, seconds: float, settle: float, noisy: bool) -> Neighbours:
    """One run. The black hole's deliveries are given up at its end."""
    report(f"{rate:,.0f} events a second to 20 subscriptions" + (", one a black hole" if noisy else ""))
    label = "noisy" if noisy else "quiet"
    types = [f"bench.{label}.{number}" for number in range(SUBSCRIPTIONS)]
    paths = [
        "/hang" if noisy else "/ok/first",
        *(f"{NEIGHBOURS}{label}/{n}" for n in range(1, SUBSCRIPTIONS)),
    ]
    place.subscribe(list(zip(types, paths, strict=True)))
    loaded = run_load(place.load(*types, count=int(rate * seconds), rate=rate, connections=256))
    accepted_at, first = loaded.accepted_at, loaded.started_at + settle
    to_the_first = -(-len(accepted_at) // SUBSCRIPTIONS)
    place.receiver.wait_for(len(accepted_at) - to_the_first, of=NEIGHBOURS)
    latencies = [
        max(0.0, at - accepted_at[event_id]) * 1000
        for (path, event_id), at in place.receiver.take().items()
        if path.startswith(NEIGHBOURS) and accepted_at[event_id] >= first
    ]
    return Neighbours(len(latencies), percentiles(latencies))


def compared(rate: float, quiet: list[Neighbours], noisy: list[Neighbours]) -> Noise:
    calm, loud = (statistics.median(run.latency_ms.p95 or 0 for run in runs) for runs in (quiet, noisy))
    return Noise(rate, round(calm, 1), round(loud, 1), times(loud, calm), quiet, noisy)


def table(result: dict[str, Any]) -> str:
    rows = [
        (kind, f"{run['deliveries']:,}", *(ms(run["latency_ms"][rank]) for rank in ("p50", "p95", "p99")))
        for kind, runs in (("twenty good", result["quiet"]), ("one black hole", result["noisy"]))
        for run in runs
    ]
    return (
        shown(("receivers", "deliveries", "p50 ms", "p95 ms", "p99 ms"), rows)
        + f"\np95 of the others beside a black hole: {result['times']} times that without"
    )


if __name__ == "__main__":
    main()
