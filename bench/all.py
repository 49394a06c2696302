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
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench import rows
from bench.rows import COLUMNS, Row
from hooksaga.cli.signals import interrupt_on_sigterm

BENCH = "hooksaga.cli.app bench"
BEGIN, END = "<!-- figures: bench/all.py -->", "<!-- /figures -->"


@dataclass(frozen=True, slots=True)
class Measurement:
    """options and quick: of the command; runs: how often it is run, one after the other."""

    command: str
    options: str
    quick: str
    rows: Callable[[list[Any]], list[Row]]
    runs: int = 1


def main() -> None:
    options = _arguments()
    interrupt_on_sigterm()
    wanted = options.only or list(MEASUREMENTS)
    options.into.mkdir(parents=True, exist_ok=True)
    shown: list[Row] = []
    for name in wanted:
        results = [_result(name, run, options) for run in range(MEASUREMENTS[name].runs)]
        shown += MEASUREMENTS[name].rows(results)
    text = section(shown, quick=options.quick)
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
        words = f"{measurement.command} --json {measurement.quick if options.quick else measurement.options}"
        print(f"{name}, run {run + 1} of {measurement.runs}", file=sys.stderr, flush=True)
        done = subprocess.run(
            [sys.executable, "-m", *words.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(f"{name} ended with {done.returncode}")
        kept.write_text(done.stdout, encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def section(shown: list[Row], *, quick: bool = False) -> str:
    """The machine, the date, and the table in Markdown."""
    lines = [_where_and_when() + (" Tiny numbers: no measurement." if quick else ""), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in shown])


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


MEASUREMENTS = {
    "throughput": Measurement(BENCH, "--events 20000", "--events 300", rows.throughput, runs=3),
    "latency": Measurement(
        BENCH, "--events 6000 --rate 200", "--events 100 --rate 100", rows.latency, runs=3
    ),
    "ingest": Measurement("bench.ingest", "", "--events 300 --batch-events 500", rows.ingest, runs=3),
    "ingest-delivering": Measurement(
        "bench.ingest", "--deliver", "--deliver --events 300 --batch-events 500", rows.delivering, runs=3
    ),
    "fan-out": Measurement(
        "bench.fan_out", "", "--subscriptions 100 --rate 50 --seconds 3 --rounds 1", rows.fan_out
    ),
    "noisy-neighbour": Measurement(
        "bench.noisy_neighbour", "", "--rate 50 --seconds 3 --settle 1 --rounds 1", rows.noisy
    ),
    "noisy-neighbour-half": Measurement(
        "bench.noisy_neighbour",
        "--half --batch 20 --seconds 30 --settle 5",
        "--half --events 500 --seconds 3 --settle 1 --rounds 1",
        rows.noisy,
    ),
    "closed-neighbours": Measurement(
        "bench.closed_neighbours", "", "--subscriptions 100 --events 300 --rounds 1", rows.closed
    ),
    "outage": Measurement("bench.outage", "", "--hours 0.05 --rate 1 --faster 100", rows.outage),
    "depth": Measurement(
        "bench.depth", "", "--finished 5000 --waiting 1000 --events 600 --rounds 1", rows.depth
    ),
    "memory": Measurement("bench.memory", "", "--deliveries 2000 --round 1000", rows.memory),
}


if __name__ == "__main__":
    main()
