"""Measure the inputs of `hooksaga cost`, and write them to shared/hooksaga/cost/inputs.json.

    .venv/bin/python -m bench.cost_inputs [--events 500]

Every function is invoked with batches of 1, 10 and 100. The bytes, and the database's processor time and writes, come
from two fan-outs, so that what an event costs and what each of its deliveries costs can be told apart. A machine that
is busy with other things makes the times longer, never the bytes.
"""

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bench.figures import as_json
from bench.lambda_place import PAYLOAD_BYTES, Pipeline, Spent, log_into, running_pipeline
from bench.processor import cpu_of_server
from hooksaga.adapters.queues import Queue
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
BATCHES = (1, 10, 100)
STATISTICS_SECONDS = 11
"""A session that does nothing tells its statistics after ten seconds."""

STORED = """
    SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
WAL = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"
WRITES = """
    SELECT sum(CASE object WHEN 'wal' THEN fsyncs ELSE writes + extends END)::bigint FROM pg_stat_io
    WHERE object IN ('wal', 'relation')
"""
COUNTED_EVENTS = 20
COUNT_ON = ("ALTER SYSTEM SET log_min_duration_statement = 0", "SELECT pg_reload_conf()")


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes that some events made, milliseconds of the database's processor time, and writes to its disk: flushes of
    the log, and pages of tables and indexes."""

    wal: int
    stored: int
    logged: int
    cpu_ms: float
    writes: int


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
            runs = {str(batch): _run_measured(pipeline, log, events, batch) for batch in BATCHES}
            ticks = {name: _tick(pipeline, name) for name in TICKS}
            statements = _statements(pipeline)
    return {"runs": runs, "ticks": ticks, "statements": statements}


def _run_measured(pipeline: Pipeline, log: Path, events: int, batch: int) -> dict[str, Any]:
    """Invocations, and what each event made, in batches of this size. Pages are written by the checkpoint."""
    pipeline.run("CHECKPOINT")
    before = _size(pipeline, log)
    spent = _run(pipeline, events, batch)
    cpu_ms = cpu_of_server(pipeline.folder) * 1000
    pipeline.run("CHECKPOINT")
    time.sleep(STATISTICS_SECONDS)
    after = asdict(_size(pipeline, log)) | {"cpu_ms": cpu_ms}
    sizes = {one.name: (after[one.name] - getattr(before, one.name)) / events for one in fields(Size)}
    return {"spent": spent, "sizes": sizes}


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


def _statements(pipeline: Pipeline) -> float:
    """Statements for each event that comes alone, from the POST to its last delivery applied, by the server's log."""
    for statement in COUNT_ON:
        pipeline.run(statement)
    time.sleep(1)
    server_log = pipeline.folder / "postgres" / "server.log"
    before = server_log.stat().st_size
    _run(pipeline, COUNTED_EVENTS, 1)
    lines = server_log.read_bytes()[before:].decode(errors="replace").splitlines()
    executed = [line for line in lines if " ms  execute " in line or " ms  statement: " in line]
    return round(len(executed) / COUNTED_EVENTS, 1)


def _told(spent: Spent, calls: int) -> dict[str, float]:
    """What one invocation takes."""
    return {
        "ms": round(spent.seconds / spent.invocations * 1000, 2),
        "cpu_ms": round(spent.cpu_seconds / spent.invocations * 1000, 2),
        "sqs_calls": round(calls / spent.invocations, 2),
    }


def _size(pipeline: Pipeline, log: Path) -> Size:
    (wal,), (stored,), (writes,) = (pipeline.run(query)[0] for query in (WAL, STORED, WRITES))
    return Size(wal, stored, log.stat().st_size, cpu_of_server(pipeline.folder) * 1000, writes)


def _together(one: Any, four: Any, events: int) -> dict[str, Any]:
    of_each = {
        batch: _apart(one["runs"][batch]["sizes"], four["runs"][batch]["sizes"]) for batch in one["runs"]
    }
    return {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "payload_bytes": PAYLOAD_BYTES,
        "events": events,
        "invocations": {batch: run["spent"] for batch, run in one["runs"].items()},
        "ticks": one["ticks"],
        "statements": one["statements"],
        "stored_bytes": {part: round(_stored(of_each.values(), part)) for part in ("event", "delivery")},
        "made": {
            batch: {part: _made(sizes) for part, sizes in parts.items()} for batch, parts in of_each.items()
        },
    }


def _stored(runs: Iterable[dict[str, dict[str, float]]], part: str) -> float:
    """On average of all runs: a table grows by many pages at once, so that a run may fill those of the one before."""
    return statistics.mean(run[part]["stored"] for run in runs)


def _made(sizes: dict[str, float]) -> dict[str, float]:
    return {
        "database_ms": round(max(0.0, sizes["cpu_ms"]), 3),
        "wal_bytes": round(max(0.0, sizes["wal"])),
        "writes": round(max(0.0, sizes["writes"]), 2),
        "log_bytes": round(max(0.0, sizes["logged"])),
    }


def _apart(one: dict[str, float], four: dict[str, float]) -> dict[str, dict[str, float]]:
    """What an event costs, and each of its deliveries, from two fan-outs."""
    deliveries = FAN_OUTS[1] - FAN_OUTS[0]
    delivery = {name: (four[name] - one[name]) / deliveries for name in one}
    return {"event": {name: one[name] - delivery[name] for name in one}, "delivery": delivery}


if __name__ == "__main__":
    main()
