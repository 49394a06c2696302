"""Measure the inputs of `hooksaga cost`, and write them to shared/hooksaga/cost/inputs.json.

    .venv/bin/python -m bench.cost_inputs [--events 500]

Every function is invoked with batches of 1 and of 10. WAL, stored and log bytes and the database's processor time come
from two fan-outs, so that what an event costs and what each of its deliveries costs can be told apart. A machine that
is busy with other things makes the times longer, never the bytes.
"""

import argparse
import datetime
import json
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import as_json
from bench.lambda_place import PAYLOAD_BYTES, Pipeline, Spent, log_into, running_pipeline
from bench.processor import cpu_of_tree
from hooksaga.adapters.queues import Queue
from hooksaga.local import postmaster
from hooksaga.local.sqs.event_source import tick_event

TARGET = Path(__file__).resolve().parents[1] / "shared" / "hooksaga" / "cost" / "inputs.json"
STEPS = (
    ("router", "router", Queue.ROUTING),
    ("orchestrator, new sagas", "orchestrator", Queue.ORCHESTRATION),
    ("delivery", "delivery", Queue.DELIVERY),
    ("orchestrator, results", "orchestrator", Queue.ORCHESTRATION),
)
TICKS = ("router", "orchestrator", "lease_cleaner", "health_monitor")
WARM_UP_EVENTS = 50
FAN_OUTS = (1, 4)
SIZES = ("wal", "stored", "logged", "cpu_ms")

STORED = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
WAL = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes that some events made, and milliseconds of the database's processor time."""

    wal: int
    stored: int
    logged: int
    cpu_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=500)
    parser.add_argument("--fan-out", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fan_out is not None:
        print(as_json(_measure(options.events, options.fan_out)))
        return
    one, four = (_in_a_process(options.events, fan_out) for fan_out in FAN_OUTS)
    TARGET.write_text(as_json(_together(one, four, options.events)))


def _in_a_process(events: int, fan_out: int) -> Any:
    """A process imports a handler once, with the database that it then has."""
    command = [sys.executable, "-m", "bench.cost_inputs", "--events", str(events), "--fan-out", str(fan_out)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _measure(events: int, fan_out: int) -> dict[str, Any]:
    with running_pipeline(fan_out) as pipeline:
        log = pipeline.folder / "log"
        with log_into(log):
            _run(pipeline, WARM_UP_EVENTS, 10)
            pipeline.run("CHECKPOINT")
            single = _run(pipeline, events // 5, 1)
            before = _size(pipeline, log)
            full = _run(pipeline, events, 10)
            after = _size(pipeline, log)
            ticks = {name: _tick(pipeline, name) for name in TICKS}
    sizes = {name: (getattr(after, name) - getattr(before, name)) / events for name in SIZES}
    return {"1": single, "10": full, "ticks": ticks, "sizes": sizes}


def _run(pipeline: Pipeline, events: int, batch: int) -> dict[str, Any]:
    """All steps of a batch of events after the other: one message to the orchestrator starts all that is due."""
    spent = {title: Spent() for title in ("ingest", *(title for title, _, _ in STEPS))}
    calls = dict.fromkeys(spent, 0)
    for first in range(0, events, batch):
        before = pipeline.kept.calls
        for number in range(first, min(first + batch, events)):
            pipeline.post(number, spent["ingest"])
        calls["ingest"] += pipeline.kept.calls - before
        for title, name, queue in STEPS:
            before = pipeline.kept.calls
            pipeline.work_off(name, queue, batch, spent[title])
            calls[title] += pipeline.kept.calls - before
    return {title: _told(one, calls[title]) for title, one in spent.items()}


def _tick(pipeline: Pipeline, name: str) -> dict[str, float]:
    spent = Spent()
    for _ in range(20):
        pipeline.invoke(name, tick_event(name), 0, spent)
    return _told(spent, 0)


def _told(spent: Spent, calls: int) -> dict[str, float]:
    """What one invocation takes."""
    return {
        "ms": round(spent.seconds / spent.invocations * 1000, 2),
        "cpu_ms": round(spent.cpu_seconds / spent.invocations * 1000, 2),
        "sqs_calls": round(calls / spent.invocations, 2),
    }


def _size(pipeline: Pipeline, log: Path) -> Size:
    server = postmaster.running_on(pipeline.folder / "postgres")
    cpu_ms = cpu_of_tree(server.pid if server else None) * 1000
    return Size(pipeline.run(WAL)[0][0], pipeline.run(STORED)[0][0], log.stat().st_size, cpu_ms)


def _together(one: Any, four: Any, events: int) -> dict[str, Any]:
    deliveries = FAN_OUTS[1] - FAN_OUTS[0]
    per_delivery = {name: (four["sizes"][name] - one["sizes"][name]) / deliveries for name in SIZES}
    per_event = {name: one["sizes"][name] - per_delivery[name] for name in SIZES}
    cpu_ms = {"event": per_event.pop("cpu_ms"), "delivery": per_delivery.pop("cpu_ms")}
    return {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "payload_bytes": PAYLOAD_BYTES,
        "events": events,
        "invocations": {"1": one["1"], "10": one["10"]},
        "ticks": one["ticks"],
        "bytes_per_event": {name: round(value) for name, value in per_event.items()},
        "bytes_per_delivery": {name: round(value) for name, value in per_delivery.items()},
        "database_cpu_ms": {name: round(max(0.0, value), 2) for name, value in cpu_ms.items()},
    }


if __name__ == "__main__":
    main()
