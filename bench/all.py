"""Every measurement of docs/performance.md in order, and the rows of its table.

    .venv/bin/python -m bench.all [--quick] [--only NAME ...] [--into FOLDER] [--page docs/performance.md]

Each measurement is a command of its own, whose JSON stays in the folder: one that is there already is not measured
again. Rows are printed when all are done; with --page they replace those between the two marks of the page, with the
machine and the date above them. `--quick` takes tiny numbers, which show that everything runs and nothing else.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from hooksaga.cli.signals import interrupt_on_sigterm

BEGIN, END = "<!-- figures: bench/all.py -->", "<!-- /figures -->"
COLUMNS = ("what", "figure", "beside it, in the same run", "floor")

Row = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Measurement:
    """arguments and quick: for python; runs: how often it is run, one after the other."""

    arguments: tuple[str, ...]
    quick: tuple[str, ...]
    rows: Callable[[list[Any]], list[Row]]
    runs: int = 1


def main() -> None:
    options = _arguments()
    interrupt_on_sigterm()
    wanted = options.only or list(MEASUREMENTS)
    options.into.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in wanted:
        results = [_result(name, run, options) for run in range(MEASUREMENTS[name].runs)]
        rows += MEASUREMENTS[name].rows(results)
    text = section(rows, quick=options.quick)
    print(text)
    if options.page is not None:
        write_page(options.page, text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny numbers")
    parser.add_argument("--only", nargs="+", choices=list(MEASUREMENTS), metavar="NAME", help="some of them")
    parser.add_argument("--into", type=Path, default=Path("build/bench"), help="where the JSON is kept")
    parser.add_argument("--page", type=Path, help="a page whose table is replaced")
    return parser.parse_args()


def _result(name: str, run: int, options: argparse.Namespace) -> Any:
    kept = options.into / f"{name}{'-quick' if options.quick else ''}-{run + 1}.json"
    if not kept.exists():
        measurement = MEASUREMENTS[name]
        arguments = measurement.quick if options.quick else measurement.arguments
        print(f"{name}, run {run + 1} of {measurement.runs}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{name} ended with {done.returncode}")
        kept.write_text(done.stdout, encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def section(rows: list[Row], *, quick: bool = False) -> str:
    """The machine, the date, and the table in Markdown."""
    lines = [_where_and_when() + (" Tiny numbers: no measurement." if quick else ""), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _where_and_when() -> str:
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[2]
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {psutil.cpu_count()} cores ({_processor()}), {memory:.0f} GB,"
        f" {platform.system()}, Python {platform.python_version()}; the load of the last 15 minutes was {load:.1f}."
    )


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def write_page(page: Path, text: str) -> None:
    """Raises ValueError for a page without the marks."""
    content = page.read_text(encoding="utf-8")
    begin, end = content.index(BEGIN) + len(BEGIN), content.index(END)
    page.write_text(f"{content[:begin]}\n\n{text}\n\n{content[end:]}", encoding="utf-8")


def _of(values: list[float], digits: int = 0) -> str:
    """The median, with the lowest and the highest where there are several."""
    middle = f"{statistics.median(values):,.{digits}f}"
    return (
        middle if len(values) == 1 else f"{middle} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"
    )


def _throughput(results: list[Any]) -> list[Row]:
    rates = [one["deliveries_per_second"] for one in results]
    return [("throughput, 20,000 events at once", f"{_of(rates)} deliveries/s", "see bench/compare.py", "")]


def _latency(results: list[Any]) -> list[Row]:
    ranks = {rank: _of([one["latency_ms"][rank] for one in results], 1) for rank in ("p50", "p95")}
    accept = _of([one["accept_ms"]["p95"] for one in results], 1)
    return [
        (
            "latency at 200 events/s, 202 to receiver",
            f"p50 {ranks['p50']} ms, p95 {ranks['p95']} ms",
            f"POST to 202: p95 {accept} ms",
            "p50 15 ms, p95 40 ms",
        )
    ]


FLOORS = {"single": "1,500/s; p95 10 ms at half", "batch": "20,000/s; p95 10 ms at half"}


def _ingest(results: list[Any]) -> list[Row]:
    rows: list[Row] = []
    for kind, floor in FLOORS.items():
        pairs = [[run for run in result if run["kind"] == kind] for result in results]
        full, half = ([pair[place] for pair in pairs] for place in (0, 1))
        what = "one by one" if kind == "single" else f"in batches of {full[0]['batch']}"
        client = statistics.median(run["cpu"]["client"] for run in full) * 100
        rows.append(
            (
                f"ingest {what}",
                f"{_of([run['events_per_second'] for run in full])} events/s; p95 {_p95(half)} ms at half of that",
                f"p95 {_p95(full)} ms at full rate; client {client:.0f} % of a core",
                floor,
            )
        )
    return rows


def _p95(runs: list[Any]) -> str:
    return _of([run["request_ms"]["p95"] for run in runs], 1)


def _delivering(results: list[Any]) -> list[Row]:
    return [
        (f"{what}, delivering as well", figure, beside, "") for what, figure, beside, _ in _ingest(results)
    ]


def _fan_out(results: list[Any]) -> list[Row]:
    one = results[0]
    figure = f"{one['seconds']:.1f} s, {one['deliveries_per_second']:,.0f} deliveries/s"
    alone = f"others' p95 to 202 {one['accept_p95_ms']:,.1f} ms, {one['accept_times']} times that alone"
    arrivals = f"{one['latency_times']} times that alone"
    return [
        (f"fan-out of one event to {one['subscriptions']:,}", figure, alone, "1.5 times"),
        ("and others' p95 from 202 to receiver", f"{one['latency_p95_ms']:,.1f} ms", arrivals, ""),
    ]


def _noisy(results: list[Any]) -> list[Row]:
    one = results[0]
    beside = f"{one['quiet_p95_ms']:,.1f} ms without: {one['times']} times"
    return [("one of 20 a black hole, p95 of the 19", f"{one['noisy_p95_ms']:,.1f} ms", beside, "1.5 times")]


def _depth(results: list[Any]) -> list[Row]:
    one = results[0]
    slowest = max(one["queries"], key=lambda query: query["full_ms"])
    depth = f"{one['finished']:,} jobs and {one['waiting']:,} waiting sagas"
    return [
        (
            f"throughput beside {depth}",
            f"{_of(one['full_rates'])} deliveries/s",
            f"{_of(one['empty_rates'])} on the empty database: {one['share']} times",
            "0.85 times",
        ),
        (
            "slowest claim or due query there",
            f"{slowest['full_ms']:.1f} ms ({slowest['query'].partition(': ')[2]})",
            f"{slowest['empty_ms']:.1f} ms",
            "5 ms",
        ),
    ]


def _memory(results: list[Any]) -> list[Row]:
    one = results[0]
    ends = f"{one['first_mb']:.0f} MB after the first round, {one['last_mb']:.0f} MB at the end"
    growth = f"{ends}; {one['mb_per_100_000']:+.1f} MB per 100,000"
    return [
        (
            f"memory over {one['deliveries']:,} deliveries",
            f"peak {one['peak_mb']:.0f} MB",
            growth,
            "250 MB, flat",
        )
    ]


def _bench(*arguments: str) -> tuple[str, ...]:
    return ("hooksaga.cli.app", "bench", "--json", *arguments)


def _script(name: str, *arguments: str) -> tuple[str, ...]:
    return (f"bench.{name}", "--json", *arguments)


MEASUREMENTS = {
    "throughput": Measurement(_bench("--events", "20000"), _bench("--events", "300"), _throughput, runs=3),
    "latency": Measurement(
        _bench("--events", "6000", "--rate", "200"),
        _bench("--events", "100", "--rate", "100"),
        _latency,
        runs=3,
    ),
    "ingest": Measurement(
        _script("ingest"), _script("ingest", "--events", "300", "--batch-events", "500"), _ingest, runs=3
    ),
    "ingest-delivering": Measurement(
        _script("ingest", "--deliver"),
        _script("ingest", "--deliver", "--events", "300", "--batch-events", "500"),
        _delivering,
        runs=3,
    ),
    "fan-out": Measurement(
        _script("fan_out"),
        _script("fan_out", "--subscriptions", "100", "--rate", "50", "--seconds", "3", "--rounds", "1"),
        _fan_out,
    ),
    "noisy-neighbour": Measurement(
        _script("noisy_neighbour"),
        _script("noisy_neighbour", "--rate", "50", "--seconds", "3", "--settle", "1", "--rounds", "1"),
        _noisy,
    ),
    "depth": Measurement(
        _script("depth"),
        _script("depth", "--finished", "5000", "--waiting", "1000", "--events", "600", "--rounds", "1"),
        _depth,
    ),
    "memory": Measurement(
        _script("memory"), _script("memory", "--deliveries", "2000", "--round", "1000"), _memory
    ),
}


if __name__ == "__main__":
    main()
