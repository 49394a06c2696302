"""Events a second that the HTTP API takes, one by one and in batches; and its latency at half of that.

    .venv/bin/python -m bench.ingest [--events 20000] [--batch-events 100000] [--batch 100] [--deliver] [--json]

The first run of each kind posts as fast as the API answers, by 32 connections. The second posts at half the rate
that the first reached; its times go from the moment a request was due to the end of its answer, so that waiting for
a connection counts. The client is a process of its own. The events are routed meanwhile; with --deliver there is a
subscription, and they are delivered as well.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from bench.figures import ms, shown
from bench.load import Loaded, run_load
from bench.place import Place, parser_of, report, run_at_new_place
from hooksaga.local.bench_figures import Percentiles, percentiles

EVENT_TYPE = "bench.ingest"
WARM_UP_EVENTS = 500
BATCH_CONNECTIONS = 8
"""So many batches at once keep the API busy, and do not stand in a queue for long."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """One run. rate: what was asked for, None for all that is taken. cpu: of one core, by process."""

    kind: str
    batch: int
    rate: float | None
    events: int
    seconds: float
    events_per_second: float
    request_ms: Percentiles
    cpu: dict[str, float]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="of each run, one by one")
    parser.add_argument("--batch-events", type=int, default=100_000, help="of each run, in batches")
    parser.add_argument("--batch", type=int, default=100, help="events of a batch, 500 at the most")
    parser.add_argument("--deliver", action="store_true", help="deliver the events as well")
    run_at_new_place(parser, measure, table)


def measure(place: Place, *, events: int, batch_events: int, batch: int, deliver: bool) -> list[Ingested]:
    if deliver:
        place.subscribe([(EVENT_TYPE, "/ok/ingest")])
    _run(place, "warm-up", min(WARM_UP_EVENTS, events), 1, None)
    runs: list[Ingested] = []
    for kind, count, size in (("single", events, 1), ("batch", batch_events, batch)):
        runs.append(full := _run(place, kind, count, size, None))
        runs.append(_run(place, kind, count, size, full.events_per_second / 2))
    return runs


def _run(place: Place, kind: str, count: int, batch: int, rate: float | None) -> Ingested:
    report(f"{kind}: {count} events" + (f" at {rate:,.0f} a second" if rate else ""))
    connections = 32 if batch == 1 else BATCH_CONNECTIONS
    if rate is not None:
        connections = 256  # as many as it takes to be on time
    load = place.load(EVENT_TYPE, count=count, batch=batch, rate=rate, connections=connections)
    before = place.cpu()
    loaded = run_load(load)
    used = {name: seconds - before[name] for name, seconds in place.cpu().items()}
    place.wait_until_routed()
    return _ingested(kind, load.batch, rate, loaded, used | {"client": loaded.cpu_seconds})


def _ingested(kind: str, batch: int, rate: float | None, loaded: Loaded, cpu: dict[str, float]) -> Ingested:
    events = sum(len(answer.event_ids) for answer in loaded.answers)
    return Ingested(
        kind,
        batch,
        rate and round(rate, 1),
        events,
        round(loaded.seconds, 3),
        round(events / loaded.seconds, 1),
        percentiles(loaded.milliseconds()),
        {name: round(seconds / loaded.seconds, 3) for name, seconds in cpu.items()},
    )


def table(runs: Sequence[Ingested]) -> str:
    names = ("hooksaga", "postgres", "receiver", "client")
    rows = [
        (
            run.kind if run.batch == 1 else f"batches of {run.batch}",
            "all at once" if run.rate is None else f"{run.rate:,.0f}/s",
            f"{run.events_per_second:,.0f}",
            *map(ms, astuple(run.request_ms)),
            *(f"{run.cpu.get(name, 0) * 100:.0f} %" for name in names),
        )
        for run in runs
    ]
    columns = ("events", "asked", "taken/s", "p50 ms", "p95 ms", "p99 ms", *(f"CPU {name}" for name in names))
    return shown(columns, rows)


if __name__ == "__main__":
    main()
