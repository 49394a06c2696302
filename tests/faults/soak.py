"""A soak: hours of load with receivers that fail and are slow, and a SIGKILL every minute. `make soak`.

Two processes share one database; one is killed again and again, the other is never, and its memory is watched. At the
end nothing may be missing, and nothing may have grown but the rows. Prints a table, writes JSON, and exits with 1 when
something does not hold.
"""

import argparse
import asyncio
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from rich.console import Console
from rich.table import Table

from hooksaga.local.bench_processes import Arrivals, child, receive
from hooksaga.local.tls import ensure_certificates
from tests.e2e.up_process import UpProcess
from tests.e2e.world import findings
from tests.faults.machine import made_of
from tests.faults.soak_figures import FAN_OUT, MIB, Counts, Sample, Verdict, judge
from tests.faults.soak_load import Posters, subscribe
from tests.faults.soak_page import soak_page

DEFAULT_OUTPUT = Path("build/soak.json")
SAMPLES_WANTED = 360
MIN_PAUSE_SECONDS = 1.0
SETTLED_WITHIN_SECONDS = 180
LEASE_SECONDS = 35

# Asks only what an index or the statistics know, so that looking costs nothing however much was delivered.
_SAMPLE = """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, 'hooksaga ')) AS connections,
           (SELECT count(*) FROM webhook_delivery_sagas WHERE status = 'InProgress')
               + (SELECT count(*) FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry'))
               + (SELECT count(*) FROM routing_outbox) AS open_sagas,
           sum(pg_total_relation_size(relid)) AS bytes, sum(n_live_tup) AS live_rows, sum(n_dead_tup) AS dead_rows
      FROM pg_stat_user_tables"""

_ENDED = """
    SELECT (SELECT count(DISTINCT external_id) FROM events) AS events,
           count(*) FILTER (WHERE status = 'Completed') AS completed,
           count(*) FILTER (WHERE status = 'DeadLettered') AS dead FROM webhook_delivery_sagas"""


class Soak:
    """One run in a folder of its own."""

    def __init__(self, folder: Path, seconds: float, rate: float, kill_every: float) -> None:
        self._seconds = seconds
        self._rate = rate
        self._kill_every = kill_every
        certificates = ensure_certificates(folder)
        settings = {
            "HOOKSAGA_LEASE_SECONDS": str(LEASE_SECONDS),
            "HOOKSAGA_MAX_RETRY_LIMIT": "3",
            "HOOKSAGA_BASE_DELAY_SECONDS": "1",
            "HOOKSAGA_LOG_LEVEL": "ERROR",
        }
        self.survivor = UpProcess(folder, certificates, **settings)
        self.victim = UpProcess(folder, certificates, **settings)
        self.samples: list[Sample] = []
        self.kills = 0
        self._chance = random.Random()

    async def run(self, receiver: Pipe, receiver_url: str) -> Counts:
        """Everything, until nothing is open any more."""
        await asyncio.to_thread(self.survivor.start)
        await asyncio.to_thread(self.victim.start)
        await asyncio.to_thread(subscribe, self.survivor, receiver_url)
        self._url = self.survivor.server.start()
        self._started = time.monotonic()
        self._posters = Posters([self.survivor.port, self.victim.port], self._rate, self._seconds)
        watching = asyncio.create_task(self._watch())
        killing = asyncio.create_task(self._kill_again_and_again())
        await self._posters.run()
        killing.cancel()
        with suppress(asyncio.CancelledError):
            await killing
        watching.cancel()
        await self._until_settled()
        self.samples.append(await asyncio.to_thread(self._sample))
        receiver.send(None)
        arrivals: Arrivals = await asyncio.to_thread(receiver.recv)
        told, ended = self._posters.told, self._row(_ENDED)
        return Counts(
            accepted=told.accepted,
            expected_dead=told.failing * FAN_OUT,
            arrived=len(arrivals.first),
            requests=arrivals.requests,
            turned_away=told.turned_away,
            hang_ups=told.hang_ups,
            kills=self.kills,
            **ended,
        )

    async def _watch(self) -> None:
        pause = max(MIN_PAUSE_SECONDS, self._seconds / SAMPLES_WANTED)
        while True:
            self.samples.append(await asyncio.to_thread(self._sample))
            await asyncio.sleep(pause)

    def _sample(self) -> Sample:
        row = self._row(_SAMPLE)
        return Sample(
            seconds=round(time.monotonic() - self._started, 1),
            rss_mib=round(sum(one.memory_info().rss for one in self.survivor.processes()) / MIB, 1),
            connections=row["connections"],
            table_mib=round(int(row["bytes"]) / MIB, 2),
            events=self._posters.told.accepted,
            live_rows=int(row["live_rows"]),
            dead_rows=int(row["dead_rows"]),
            open_sagas=row["open_sagas"],
        )

    def _row(self, query: Any) -> dict[str, Any]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            row = connection.cursor(row_factory=dict_row).execute(query).fetchone()
        assert row is not None
        return row

    async def _kill_again_and_again(self) -> None:
        """Never in the middle of the victim's start: a cancelled start would leave it behind."""
        while True:
            await asyncio.sleep(self._kill_every * self._chance.uniform(0.9, 1.1))
            await asyncio.shield(asyncio.to_thread(self._kill_one))

    def _kill_one(self) -> None:
        self.victim.kill()
        self.kills += 1
        self.victim.start()

    async def _until_settled(self) -> None:
        deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
        while (await asyncio.to_thread(self._row, _SAMPLE))["open_sagas"] and time.monotonic() < deadline:
            await asyncio.sleep(1)

    def verdicts(self, counts: Counts) -> list[Verdict]:
        alive = self.survivor.is_alive
        return [
            *judge(self.samples, counts, findings(self._url)),
            Verdict("one process survives", alive, f"the other was killed {self.kills} times"),
        ]

    def close(self) -> None:
        for process in (self.victim, self.survivor):
            process.close()


def measured_rate() -> float:
    """Half of what this machine delivers, as events a second."""
    command = [sys.executable, "-m", "hooksaga.cli.app", "bench", "--events", "5000", "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["deliveries_per_second"] / 2 / FAN_OUT


def soak(minutes: float, rate: float, kill_every: float) -> tuple[Soak, Counts, list[Verdict]]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-soak-"))
    run = Soak(folder, minutes * 60, rate, kill_every)
    try:
        with child(receive, folder) as receiver:
            counts = asyncio.run(run.run(receiver, receiver.recv()))
        return run, counts, run.verdicts(counts)
    finally:
        run.close()
        shutil.rmtree(folder, ignore_errors=True)


def _show(run: Soak, verdicts: list[Verdict]) -> None:
    console = Console()
    looks = Table("after", "memory", "connections", "events", "open", "tables", "live rows", "dead rows")
    steps = max(1, len(run.samples) // 12)
    for one in [*run.samples[:-1:steps], run.samples[-1]]:
        row = (f"{one.seconds:.0f} s", f"{one.rss_mib:.0f} MiB", one.connections, one.events, one.open_sagas)
        looks.add_row(*map(str, row), f"{one.table_mib:.0f} MiB", str(one.live_rows), str(one.dead_rows))
    console.print(looks)
    result = Table("what must hold", "", "measured")
    for verdict in verdicts:
        result.add_row(verdict.name, "yes" if verdict.holds else "NO", verdict.figures)
    console.print(result)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument(
        "--rate", type=float, help="events a second; else half of what `hooksaga bench` measures"
    )
    parser.add_argument("--kill-every", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--page", type=Path, help="write the figures for people, when all holds")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    options = parser.parse_args()
    rate = options.rate or measured_rate()
    sys.stdout.write(f"{rate:.0f} events a second for {options.minutes:g} minutes\n")
    run, counts, verdicts = soak(options.minutes, rate, options.kill_every)
    _show(run, verdicts)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figures = {
        "minutes": options.minutes,
        "events_per_second": round(rate, 1),
        "counts": asdict(counts),
        "verdicts": [asdict(one) for one in verdicts],
        "samples": [asdict(one) for one in run.samples],
    }
    options.output.write_text(json.dumps(figures, indent=1) + "\n")
    sys.stdout.write(f"written to {options.output}\n")
    if not all(one.holds for one in verdicts):
        return 1
    if options.page:
        today = datetime.now(UTC).date().isoformat()
        head = f"{today}: {options.minutes:g} minutes at {rate:,.0f} events a second. {made_of()}."
        options.page.write_text(soak_page(head, counts, verdicts, run.samples), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
