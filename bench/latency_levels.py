"""The three levels of `latency`: batches, invocations and latency, through the functions and the queue emulator.

    .venv/bin/python -m bench.latency_levels [--rate 3.8] [--seconds 60] [--levels low balanced economy] [--json]

Each level runs the real functions under AWS's runtime client, with the windows and batch sizes of
shared/hooksaga/aws/latency.py and five pollers for each queue. Events come at a constant rate, by default that of ten
million a month, for four subscriptions in turn. Beside it: the same traffic in the simulation of
bench/flow_simulation.py, with the copies of `dev`.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import ms, shown
from bench.flow_simulation import simulate
from bench.load import run_load
from bench.place import new_place, parser_of, report, run_command
from bench.simulated_pipeline import Traffic
from bench.up import COUNTS, LATENCY
from hooksaga.aws.deployment import ENVIRONMENTS
from hooksaga.aws.latency import Latency
from hooksaga.cost.sources import read_inputs
from hooksaga.local.bench_figures import Percentiles, percentiles

SUBSCRIPTIONS = 4


@dataclass(frozen=True, slots=True)
class Level:
    """latency_ms: from the 202 to the receiver, and simulated_ms: the same in the simulation. invocations and messages:
    for each event, of the four queues."""

    name: str
    events: int
    latency_ms: Percentiles
    invocations: float
    messages: float
    batches: dict[str, float]
    simulated_ms: Percentiles


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rate", type=float, default=3.8, help="events a second")
    parser.add_argument("--seconds", type=float, default=60, help="of each run")
    parser.add_argument("--levels", nargs="+", choices=list(Latency), default=list(Latency))
    options = parser.parse_args()
    run_command(lambda: _run(options), table, json=options.json)


def _run(options: argparse.Namespace) -> list[Level]:
    return [measure(Latency(name), options.rate, options.seconds) for name in options.levels]


def measure(level: Latency, rate: float, seconds: float) -> Level:
    report(f"{level}: {rate:g} events a second for {seconds:g} s")
    with TemporaryDirectory(prefix="hooksaga-bench-") as folder:
        counts = Path(folder) / "counts.json"
        environment = {LATENCY: level.value, COUNTS: str(counts)}
        with new_place("--sqs", program="bench.up", environment=environment) as place:
            types = [f"bench.level.{number}" for number in range(SUBSCRIPTIONS)]
            place.subscribe([(one, f"/ok/{one}") for one in types])
            events = math.ceil(rate * seconds)
            loaded = run_load(place.load(*types, count=events, rate=rate))
            place.receiver.wait_for(events)
            came = place.receiver.take()
            place.wait_until_none("SELECT count(*) FROM webhook_delivery_sagas WHERE status <> 'Completed'")
        counted = json.loads(counts.read_text(encoding="utf-8"))
    waits = [(at - loaded.accepted_at[event_id]) * 1000 for (_, event_id), at in came.items()]
    batches, messages = counted["batches"], counted["messages"]
    return Level(
        name=level.value,
        events=events,
        latency_ms=percentiles(waits),
        invocations=round(sum(batches.values()) / events, 2),
        messages=round(sum(messages.values()) / events, 2),
        batches={queue: round(messages[queue] / many, 1) for queue, many in batches.items() if many},
        simulated_ms=_simulated(level, rate),
    )


def _simulated(level: Latency, rate: float) -> Percentiles:
    traffic = Traffic(
        rate=rate, subscriptions=20, fan_out=1, seconds=300, share_of_one=0, silent_from=math.inf
    )
    return simulate(ENVIRONMENTS["dev"].with_latency(level), traffic, read_inputs()).latency_ms


def table(result: Sequence[Level]) -> str:
    rows = [
        (
            one.name,
            one.events,
            f"{one.invocations:.2f}",
            f"{one.messages:.2f}",
            *(f"{one.batches.get(queue, 0):.1f}" for queue in ("routing", "orchestration", "delivery")),
            *map(ms, astuple(one.latency_ms)[:2]),
            *map(ms, astuple(one.simulated_ms)[:2]),
        )
        for one in result
    ]
    batches = ("routing batch", "orchestration", "delivery")
    latencies = ("p50 ms", "p95 ms", "simulated p50", "p95")
    return shown(("latency", "events", "invocations/event", "messages", *batches, *latencies), rows)


if __name__ == "__main__":
    main()
