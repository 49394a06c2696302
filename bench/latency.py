"""Milliseconds from a POST to the arrival at the receiver, at a steady rate, and what each process spends on it.

    .venv/bin/python -m bench.latency [--rate 200] [--seconds 30] [--rounds 2] [--compare disk|processes] [--json]

One subscription, one event per request. Runs of each kind alternate, each on an empty database. Times begin when the
request was due, so that waiting for a connection counts. --compare disk: also with 2 ms more for each COMMIT that waits
for the disk, as network storage takes; a stand-in, PostgreSQL's commit_delay, which waits before the log is flushed.
--compare processes: `up` in one process, and with one of its own for the API.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

from bench.figures import ms, shown
from bench.load import run_load
from bench.place import Place, new_place, parser_of, report, run_command
from hooksaga.local.bench_figures import Percentiles, percentiles

EVENT_TYPE = "bench.latency"
WARM_UP_EVENTS = 400
SLOW_DISK: tuple[LiteralString, ...] = (
    "ALTER SYSTEM SET commit_delay = 2000",
    "ALTER SYSTEM SET commit_siblings = 0",
    "SELECT pg_reload_conf()",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of run differs in."""

    name: str
    environment: Mapping[str, str] | None = None
    statements: Sequence[LiteralString] = ()


KINDS: Mapping[str | None, Sequence[Kind]] = {
    None: (Kind("-"),),
    "disk": (Kind("this disk"), Kind("2 ms a sync", statements=SLOW_DISK)),
    "processes": tuple(Kind(f"{many} process", {"HOOKSAGA_PROCESSES": str(many)}) for many in (1, 2)),
}


@dataclass(frozen=True, slots=True)
class Waits:
    """One run. post: to the 202; after: from the 202 to the arrival; whole: both. cpu: seconds per 1,000 events."""

    kind: str
    post_ms: Percentiles
    after_ms: Percentiles
    whole_ms: Percentiles
    cpu: dict[str, float]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rate", type=float, default=200, help="events a second")
    parser.add_argument("--seconds", type=float, default=30, help="of each run")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each kind")
    parser.add_argument("--compare", choices=[kind for kind in KINDS if kind], help="what is compared")
    given = parser.parse_args()
    runs = [kind for _ in range(given.rounds) for kind in KINDS[given.compare]]
    run_command(lambda: [_run(one, given.rate, given.seconds) for one in runs], table, json=given.json)


def _run(kind: Kind, rate: float, seconds: float) -> Waits:
    report(f"{rate:,.0f} events a second: {kind.name}")
    with new_place(environment=kind.environment) as place:
        for statement in kind.statements:
            place.run(statement)
        return measure(place, kind.name, rate, int(rate * seconds))


def measure(place: Place, kind: str, rate: float, count: int) -> Waits:
    place.subscribe([(EVENT_TYPE, "/ok/latency")])
    run_load(place.load(EVENT_TYPE, count=WARM_UP_EVENTS, rate=rate))
    place.receiver.wait_for(WARM_UP_EVENTS)
    place.receiver.take()
    before = place.cpu()
    loaded = run_load(place.load(EVENT_TYPE, count=count, rate=rate))
    place.receiver.wait_for(count)
    cpu = {name: round(1000 * (used - before[name]) / count, 2) for name, used in place.cpu().items()}
    came = {event_id: at for (_, event_id), at in place.receiver.take().items()}
    posted = [(answer.milliseconds, answer.at, answer.event_ids[0]) for answer in loaded.answers]
    after = [max(0.0, came[event_id] - at) * 1000 for _, at, event_id in posted]
    whole = [took + wait for (took, _, _), wait in zip(posted, after, strict=True)]
    return Waits(kind, percentiles([one[0] for one in posted]), percentiles(after), percentiles(whole), cpu)


def table(runs: Sequence[Waits]) -> str:
    rows = [
        (
            run.kind,
            *(ms(value) for one in (run.post_ms, run.after_ms, run.whole_ms) for value in (one.p50, one.p95)),
            *run.cpu.values(),
        )
        for run in runs
    ]
    names = [f"{name} {share}" for name in ("POST", "after", "whole") for share in ("p50", "p95")]
    return shown(("", *names, *(f"{name} CPU s" for name in runs[0].cpu)), rows)


if __name__ == "__main__":
    main()
