"""Deliveries per second of hooksaga and of graphile-worker, alternately, to one nginx: a table.

    apt-get install nginx-light && (cd bench/peers && npm install --no-package-lock)
    .venv/bin/python -m bench.compare [--jobs 20000] [--rounds 3] [--tune]

Both have the PostgreSQL of `hooksaga up` with the same settings (every commit is synced), the same 600-byte body,
TLS connections that are kept, one process that sends, and count from the first event or job handed over until the
last one is finished in the database. hooksaga signs each request and keeps each attempt; graphile-worker does
neither, and deletes its jobs. nginx counts what arrived: a run with fewer requests than deliveries is an error.

CPU seconds are those of a run less those of a run of one delivery, so that starting up is not counted.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from bench.peers.receiver import Nginx, running_nginx
from bench.processor import cpu_of_tree
from hooksaga.local import postmaster
from hooksaga.local.postgres import EmbeddedPostgres

PEERS = Path(__file__).with_name("peers")
PAYLOAD_BYTES = 600
SAMPLE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Tuning:
    """graphile-worker's settings. `pick_tuning` tries others; these were the fastest on two cores."""

    concurrency: int = 48
    connections: int = 48
    local_queue: int = 500
    complete_delay_ms: int = 50
    pool_size: int = 10
    batch: int = 500
    client: str = "undici"


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement. CPU: seconds of processor time by kind of process, starting up included."""

    rate: float
    seconds: float
    cpu: dict[str, float]


KINDS = ("sender", "postgres", "nginx")


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        folder = Path(name)
        with running_nginx(folder) as nginx:
            peer = Peer(folder / "peer", nginx)
            try:
                if options.tune:
                    _show_tunings(peer, options.jobs)
                else:
                    _compare(peer, Hooksaga(folder / "hooksaga", nginx), options.jobs, options.rounds)
            finally:
                peer.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000, help="deliveries of each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    parser.add_argument("--tune", action="store_true", help="try settings of graphile-worker instead")
    return parser.parse_args()


class Peer:
    """graphile-worker on a server of its own, which stays up between its runs."""

    name = "graphile-worker"

    def __init__(self, folder: Path, nginx: Nginx) -> None:
        self._folder = folder
        self._nginx = nginx
        self._server = EmbeddedPostgres(folder)
        url = urlsplit(self._server.start())
        place = parse_qs(url.query)
        self._environment = os.environ | {
            "PGHOST": place["host"][0],
            "PGPORT": place["port"][0],
            "PGUSER": url.username or "",
            "PGDATABASE": url.path.removeprefix("/"),
        }

    def stop(self) -> None:
        self._server.stop()

    def run(self, jobs: int, tuning: Tuning | None = None) -> Run:
        options = asdict(tuning or Tuning()) | {
            "url": self._nginx.url,
            "ca_file": str(self._nginx.ca_file),
            "jobs": jobs,
            "payload_bytes": PAYLOAD_BYTES,
        }
        command = ["node", "graphile_worker.mjs", json.dumps(options)]
        result, cpu = _measured(command, self._environment, PEERS, self._folder, self._nginx, jobs)
        return Run(jobs / result["seconds"], result["seconds"], cpu)


class Hooksaga:
    """`hooksaga bench`: each run has a server of its own."""

    name = "hooksaga"

    def __init__(self, folder: Path, nginx: Nginx) -> None:
        self._folder = folder
        self._nginx = nginx
        self._environment = os.environ | {
            "HOOKSAGA_DATA_DIR": str(folder),
            "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
            "HOOKSAGA_CA_FILE": str(nginx.ca_file),
        }

    def run(self, jobs: int) -> Run:
        command = [
            str(Path(sys.executable).with_name("hooksaga")),
            "bench",
            "--json",
            "--url",
            self._nginx.url,
        ]
        command += ["--events", str(jobs), "--payload-bytes", str(PAYLOAD_BYTES)]
        result, cpu = _measured(command, self._environment, Path.cwd(), self._folder, self._nginx, jobs)
        return Run(result["deliveries_per_second"], result["seconds"], cpu)


def _measured(
    command: list[str], environment: dict[str, str], cwd: Path, data: Path, nginx: Nginx, jobs: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Run a command. Return its output, and the CPU seconds by kind meanwhile. Raises RuntimeError if it failed."""
    requests_before = nginx.requests()
    process = subprocess.Popen(
        command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    with _Processor(
        {"sender": lambda: process.pid, "postgres": lambda: _server_in(data), "nginx": lambda: nginx.pid}
    ) as cpu:
        output, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{command[:2]} ended with {process.returncode}: {output}")
    arrived = nginx.requests() - requests_before - 1
    if arrived < jobs:
        raise RuntimeError(f"{command[:2]}: only {arrived} of {jobs} requests arrived")
    return json.loads(output), cpu.seconds()


class _Processor(threading.Thread):
    """Looks again and again at what processes have used: a server that has stopped tells no more."""

    def __init__(self, roots: dict[str, Callable[[], int | None]]) -> None:
        super().__init__(daemon=True)
        self._roots = roots
        self._first = {kind: cpu_of_tree(root()) for kind, root in roots.items()}
        self._last = dict(self._first)
        self._ended = threading.Event()

    def __enter__(self) -> "_Processor":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            for kind, root in self._roots.items():
                self._last[kind] = max(self._last[kind], cpu_of_tree(root()))

    def seconds(self) -> dict[str, float]:
        return {kind: self._last[kind] - self._first[kind] for kind in self._roots}


def _server_in(data: Path) -> int | None:
    for folder in (data / "postgres", *data.glob("bench-*/postgres")):
        if (server := postmaster.running_on(folder)) is not None:
            return server.pid
    return None


def _compare(peer: Peer, ours: Hooksaga, jobs: int, rounds: int) -> None:
    sides = (ours, peer)
    started = {side.name: side.run(1).cpu for side in sides}
    runs: dict[str, list[Run]] = {side.name: [] for side in sides}
    for number in range(1, rounds + 1):
        for side in sides:
            runs[side.name].append(run := side.run(jobs))
            print(f"round {number}  {side.name:16} {run.rate:8,.0f} a second", file=sys.stderr, flush=True)
    print(f"{'':16} {'deliveries/s':>22} {'CPU seconds per 1,000 deliveries':>40}")
    print(f"{'':16} {'median':>8} {'lowest':>6} {'highest':>7}  " + "".join(f"{kind:>10}" for kind in KINDS))
    for name, done in runs.items():
        rates = [run.rate for run in done]
        cpu = {kind: statistics.median(run.cpu[kind] for run in done) - started[name][kind] for kind in KINDS}
        print(
            f"{name:16} {statistics.median(rates):8,.0f} {min(rates):6,.0f} {max(rates):7,.0f}  "
            + "".join(f"{seconds / jobs * 1000:10.3f}" for seconds in cpu.values())
        )


def _show_tunings(peer: Peer, jobs: int) -> None:
    start = Tuning()
    tried = [
        start,
        *(replace(start, concurrency=number, connections=number) for number in (8, 16, 24, 96, 200)),
        *(replace(start, local_queue=size) for size in (49, 200, 1000, 2000)),
        *(replace(start, complete_delay_ms=delay) for delay in (-1, 0, 10, 250)),
        replace(start, pool_size=4),
        replace(start, client="https"),
    ]
    for tuning in tried:
        rates = [peer.run(jobs, tuning).rate for _ in range(2)]
        print(f"{max(rates):8,.0f} {min(rates):8,.0f}  {tuning}", flush=True)


if __name__ == "__main__":
    main()
