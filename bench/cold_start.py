"""How long each function takes from the start of its process to its import, and to its first row.

    .venv/bin/python -m bench.cold_start [--rounds 7] [--modules]

Each start is a process of its own; the figures are medians. The first row is asked for with the function's own role,
from a PostgreSQL on this machine: on AWS a token is signed before, and TLS is spoken. `--modules` shows what takes
longest to import instead, in microseconds, as `python -X importtime` counts.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from bench.figures import shown
from bench.place import empty_database
from hooksaga.aws.deployment import LOCAL

START = """
import resource, sys, time
began = float(sys.argv[2])
import importlib
module = importlib.import_module(f"functions.{sys.argv[1]}.handler")
imported = time.time()
used = resource.getrusage(resource.RUSAGE_SELF)
async def row(function, invocation):
    return await function.session.run(lambda connection: connection.execute("SELECT 1"))
if hasattr(module, "function"):
    module.function.run(row, {}, None)
first_row = time.time()
print(imported - began, used.ru_utime + used.ru_stime, first_row - began, used.ru_maxrss / 1024)
"""
LONGEST = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--modules", action="store_true")
    options = parser.parse_args()
    if options.modules:
        _show_modules()
        return
    with empty_database() as url:
        rows = [_row(name, url, options.rounds) for name in LOCAL.functions]
    print(shown(("function", "import ms", "its CPU ms", "first row ms", "MB"), rows))


def _row(name: str, url: str, rounds: int) -> tuple[object, ...]:
    starts = [_start(name, url) for _ in range(rounds)]
    imported, cpu, first_row, megabytes = (statistics.median(column) for column in zip(*starts, strict=True))
    row = "-" if name == "migrate" else f"{first_row * 1000:.0f}"
    return name, f"{imported * 1000:.0f}", f"{cpu * 1000:.0f}", row, f"{megabytes:.0f}"


def _start(name: str, url: str) -> list[float]:
    environment = os.environ | {"HOOKSAGA_DATABASE_URL": url}
    command = [sys.executable, "-c", START, name, str(time.time())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def _show_modules() -> None:
    for name in LOCAL.functions:
        command = [sys.executable, "-X", "importtime", "-c", f"import functions.{name}.handler"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()[1:]
        found = [(int(line.split("|")[1]), line.split("|")[2]) for line in lines]
        print(f"{name}:")
        for microseconds, module in sorted(found, reverse=True)[:LONGEST]:
            print(f"{microseconds:10,} {module}")


if __name__ == "__main__":
    main()
