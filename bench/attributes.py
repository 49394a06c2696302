"""What attributes and filters cost: processor time of PostgreSQL and of this process per event, and bytes.

    .venv/bin/python -m bench.attributes [--events 10000] [--wide 1000] [--rounds 3] [--json]

Accepting and routing run alone, behind a backlog, on an empty database with the settings of `hooksaga up`, with one
subscription of the type. The kinds take turns in each round, and the medians are shown. After that, one event at a
time to --wide subscriptions of its type, with and without filters.
Processor time hardly depends on what else the machine does.
"""

import asyncio
import json
import statistics
import time
from collections import defaultdict
from dataclasses import astuple, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.figures import shown
from bench.place import parser_of, report, run_command
from bench.processor import cpu_of_server
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.migrations import migrate
from hooksaga.core.event_attributes import NO_ATTRIBUTES
from hooksaga.core.event_input import EventDraft
from hooksaga.core.filters import compile_filter
from hooksaga.local.bench import make_payload
from hooksaga.local.bench_place import own_folder
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.runtime.settings import read_settings
from hooksaga.stages.accept_events import accept_events
from hooksaga.stages.route_events import route_events
from hooksaga.worker import event_loop

PAYLOAD_BYTES = 600
BATCH = 500
WIDE_EVENTS, WARM_UP = 50, 10
SUBSCRIBE = """
INSERT INTO subscriptions (event_types, callback_url, active, verified, filter, filter_path)
SELECT ARRAY[%(event_type)s], 'https://bench.example/', true, true, one.filter, one.path::jsonpath
  FROM unnest(%(filters)s::json[], %(paths)s::text[]) AS one (filter, path)"""
BYTES = """
SELECT avg(pg_column_size(e.*))::float8 FROM (SELECT * FROM events WHERE event_type = %s LIMIT 1000) AS e"""

FEW = json.dumps({"order_id": "A-1001", "country": "DE", "total": 19.99, "express": True})
MANY = json.dumps({f"attribute_{number}": f"value {number}" for number in range(20)})
FILTER: dict[str, Any] = {"country": ["DE", {"prefix": "A"}], "total": [{"numeric": [">", 10, "<=", 100]}]}

KINDS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "no attributes": (NO_ATTRIBUTES, None),
    "4 attributes": (FEW, None),
    "20 attributes": (MANY, None),
    "4 attributes, filter": (FEW, FILTER),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Microseconds of a processor per event, medians of the rounds; bytes of a row with a payload of 600 bytes."""

    name: str
    accept_python: float
    accept_postgres: float
    route_python: float
    route_postgres: float
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Wide:
    """Milliseconds for routing one event that many subscriptions of its type may take: the median by the clock, and the
    mean of a processor, PostgreSQL's and this process's together."""

    name: str
    subscriptions: int
    matched: int
    median_ms: float
    processor_ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    kinds: list[Kind]
    wide: list[Wide]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=10_000, help="of each kind in each round")
    parser.add_argument("--wide", type=int, default=1_000, help="subscriptions of one type")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    measured = partial(measure, options.events, options.wide, options.rounds)
    run_command(lambda: event_loop.run(measured()), table, json=options.json)


async def measure(events: int, wide: int, rounds: int) -> Measured:
    async with own_folder(read_settings().data_dir) as folder:
        address = DatabaseAddress(await asyncio.to_thread(EmbeddedPostgres(folder).start), prepare=True)
        await asyncio.to_thread(migrate, address)
        stages = _Stages(address, folder)
        try:
            kinds = await _kinds(stages, events, rounds)
            return Measured(
                kinds, [await _wide(stages, name, wide) for name in ("without filters", "filters")]
            )
        finally:
            await stages.close()


class _Stages:
    def __init__(self, address: DatabaseAddress, folder: Path) -> None:
        self._folder = folder
        self._sessions = {role: Session(address, role) for role in (Role.OWNER, Role.INGEST, Role.ROUTER)}

    def spent(self) -> tuple[float, float]:
        """Seconds of this process and of PostgreSQL, whose sessions live as long as the measurement."""
        return time.process_time(), cpu_of_server(self._folder)

    async def subscribe(self, event_type: str, filters: list[dict[str, Any] | None]) -> None:
        params = {
            "event_type": event_type,
            "filters": [None if one is None else json.dumps(one) for one in filters],
            "paths": [None if one is None else compile_filter(one) for one in filters],
        }
        await self._sessions[Role.OWNER].run(lambda connection: connection.execute(SUBSCRIBE, params))

    async def accept(self, event_type: str, attributes: str, count: int) -> None:
        payloads = (make_payload(number, PAYLOAD_BYTES) for number in range(count))
        drafts = [EventDraft(event_type, payload, attributes=attributes) for payload in payloads]
        for first in range(0, count, BATCH):
            batch = drafts[first : first + BATCH]
            await self._sessions[Role.INGEST].run(accept_events, batch)

    async def route(self) -> int:
        """Returns the number of sagas."""
        started = 0
        while (routed := await self._sessions[Role.ROUTER].run(route_events)).events:
            started += len(routed.saga_ids)
        return started

    async def row_bytes(self, event_type: str) -> float:
        async def read(connection: Any) -> Any:
            return await (await connection.execute(BYTES, [event_type])).fetchone()

        return (await self._sessions[Role.OWNER].run(read))[0]

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


async def _kinds(stages: _Stages, events: int, rounds: int) -> list[Kind]:
    spent: dict[str, list[list[float]]] = defaultdict(list)
    for name, (_, wanted) in KINDS.items():
        await stages.subscribe(type_of(name), [wanted])
    for turn in range(rounds + 1):  # the first one warms up
        report(f"round {turn}")
        for name, (attributes, _) in KINDS.items():
            event_type = type_of(name)
            marks = [stages.spent()]
            await stages.accept(event_type, attributes, events)
            marks.append(stages.spent())
            assert await stages.route() == events
            marks.append(stages.spent())
            if turn:
                spent[name].append(
                    [
                        1e6 * (after[part] - before[part]) / events
                        for before, after in pairwise(marks)
                        for part in (0, 1)
                    ]
                )
    kinds: list[Kind] = []
    for name in KINDS:
        accept_python, accept_postgres, route_python, route_postgres = (
            round(statistics.median(column), 1) for column in zip(*spent[name], strict=True)
        )
        row_bytes = round(await stages.row_bytes(type_of(name)))
        kinds.append(Kind(name, accept_python, accept_postgres, route_python, route_postgres, row_bytes))
    return kinds


def type_of(kind: str) -> str:
    return kind.replace(" ", "_").replace(",", "")


async def _wide(stages: _Stages, name: str, subscriptions: int) -> Wide:
    """Of the filtered ones a hundredth match."""
    event_type = f"wide.{name.replace(' ', '_')}"
    filters = [
        None
        if name == "without filters"
        else {"country": [f"C{number % 100}"], "total": [{"numeric": [">", 10]}]}
        for number in range(subscriptions)
    ]
    await stages.subscribe(event_type, filters)
    took: list[float] = []
    processor: list[float] = []
    matched = 0
    for _ in range(WIDE_EVENTS):
        await stages.accept(event_type, json.dumps({"country": "C7", "total": 19.99}), 1)
        began, spent = time.perf_counter(), sum(stages.spent())
        matched = await stages.route()
        took.append(1000 * (time.perf_counter() - began))
        processor.append(1000 * (sum(stages.spent()) - spent))
    median, mean = statistics.median(took[WARM_UP:]), statistics.mean(processor[WARM_UP:])
    return Wide(name, subscriptions, matched, round(median, 1), round(mean, 1))


def table(result: Measured) -> str:
    kinds = [astuple(kind) for kind in result.kinds]
    columns = (
        "µs per event",
        "accept Python",
        "PostgreSQL",
        "route Python",
        "PostgreSQL",
        "bytes of the row",
    )
    wide = [
        (wide.name, f"{wide.subscriptions:,}", wide.matched, wide.median_ms, wide.processor_ms)
        for wide in result.wide
    ]
    return (
        shown(columns, kinds)
        + "\n\n"
        + shown(("one event to", "of its type", "matched", "median ms", "processor ms"), wide)
    )


if __name__ == "__main__":
    main()
