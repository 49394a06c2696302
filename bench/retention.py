"""Retention: sizes of tables and indexes over a month of simulated days, the rate of deletion, and its cost.

    .venv/bin/python -m bench.retention [--days 30] [--keep 7] [--events-per-day 5000] [--events 20000] [--rounds 3]
                                        [--json]

Days: each makes the rows of one day, with three deliveries for each event, and deletes what is older than --keep days,
then vacuums. The ages are moved, not the clock. Sizes are those at the end of the day. After the first --keep days they
should be flat. The rate of deletion is that of all batches, one after the other.

Throughput: `hooksaga up` delivers --events events beside a backlog of finished ones, in turn with and without ages, so
that one of the two deletes all the time.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, LiteralString

import psycopg

from bench import history
from bench.depth import fill_history, history_subscriptions, subscribe, throughput
from bench.figures import shown, times
from bench.place import parser_of, report, run_command, running_on, running_server, temporary_folder
from bench.receiver import running_receiver
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.retention import RetentionKind
from hooksaga.operations.prune import Pruned, Pruning, prune, prune_batch

FAN_OUT = 3
DEAD_PER_THOUSAND = 2
KEPT_FOR_EVER: dict[str, str] = {}
AGES = {
    "HOOKSAGA_RETENTION_DAYS": "1",
    "HOOKSAGA_DEAD_LETTER_DAYS": "1",
    "HOOKSAGA_PAYLOAD_DAYS": "1",
    "HOOKSAGA_EVENT_DAYS": "1",
}
BACKLOG = 150_000

DEAD_LETTERS: LiteralString = """
    INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, failed_at,
                              payload_snapshot)
    SELECT s.id, e.id, s.subscription_id, e.tenant_id, e.event_type, 'http_503', s.updated_at, e.payload
      FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
     WHERE s.created_at >= %(day)s AND s.status = 'DeadLettered'"""
TABLES = ("events", "routing_decisions", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
SIZES: LiteralString = """
    SELECT c.relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM unnest(%s::text[]) AS t (name)
      JOIN pg_class c ON c.relname = t.name AND c.relnamespace = 'public'::regnamespace"""


@dataclass(frozen=True, slots=True)
class Day:
    """Sizes at the end of one day in KiB, of each table without and with its indexes, and the rows deleted in it."""

    day: int
    tables_kb: int
    indexes_kb: int
    rows_deleted: int
    seconds: float
    by_table_kb: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class Month:
    """rows_per_second: of all deletions. growth: of the last day over that after the first full age."""

    keep: int
    events_per_day: int
    days: list[Day]
    rows_per_second: int
    growth: float
    plain_rates: list[float]
    deleting_rates: list[float]
    share: float
    deleted_beside: int


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--keep", type=int, default=7, help="days for which everything is kept")
    parser.add_argument("--events-per-day", type=int, default=5_000)
    parser.add_argument("--events", type=int, default=20_000, help="delivered in each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs with and without; 0: none")
    options = parser.parse_args()
    run_command(partial(_measure, options), table, json=options.json)


def _measure(options: Any) -> Month:
    days = month_of(options.days, options.keep, options.events_per_day)
    plain, deleting, beside = _throughputs(options.events, options.rounds)
    deleted = sum(day.rows_deleted for day in days)
    seconds = sum(day.seconds for day in days)
    steady = days[min(options.keep + 1, len(days) - 1)]
    return Month(
        options.keep,
        options.events_per_day,
        days,
        round(deleted / seconds) if seconds else 0,
        times(days[-1].tables_kb + days[-1].indexes_kb, steady.tables_kb + steady.indexes_kb),
        plain,
        deleting,
        times(statistics.median(deleting), statistics.median(plain)) if plain else 0.0,
        beside,
    )


def month_of(days: int, keep: int, events: int) -> list[Day]:
    with temporary_folder() as folder, running_receiver(folder) as receiver:
        with running_on(folder, receiver) as place:
            subscribe(place)
        with running_server(folder) as url, psycopg.connect(url, autocommit=True) as connection:
            ids = history_subscriptions(url)
            return [_day(connection, url, ids, number, days, keep, events) for number in range(1, days + 1)]


def _day(
    connection: psycopg.Connection, url: str, ids: list[int], number: int, days: int, keep: int, events: int
) -> Day:
    age = timedelta(days=days - number + 1)  # this day began so long ago
    now = connection.execute("SELECT now()").fetchone()
    assert now is not None
    begin, dead = now[0] - age, events * FAN_OUT * DEAD_PER_THOUSAND // 1000
    made = history.History(
        begin, timedelta(hours=23), events, dead, "DeadLettered", FAN_OUT, keyed=True, body="ok"
    )
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        history.insert(connection, made, ids)
        connection.execute(DEAD_LETTERS, {"day": begin})
    started = time.monotonic()
    deleted = asyncio.run(_prune(url, age + timedelta(days=keep - 1)))
    seconds = time.monotonic() - started
    connection.execute(f"VACUUM {', '.join(TABLES)}".encode())
    sizes = {
        name: [table // 1024, index // 1024]
        for name, table, index in connection.execute(SIZES, [list(TABLES)])
    }
    day = Day(
        number,
        sum(table for table, _ in sizes.values()),
        sum(index for _, index in sizes.values()),
        deleted,
        round(seconds, 2),
        sizes,
    )
    report(f"day {number}: {day.tables_kb:,} KiB, indexes {day.indexes_kb:,} KiB, {deleted:,} rows deleted")
    return day


async def _prune(url: str, older_than: timedelta) -> int:
    """Delete all that is older, kind by kind; the number of rows."""
    session = Session(DatabaseAddress(url), Role.RETENTION)
    rows = 0
    try:
        for kind in RetentionKind:
            wanted = Pruning(older_than, kind=kind)

            async def run(after: Any, wanted: Pruning = wanted) -> Pruned:
                return await session.run(prune_batch, wanted=wanted, after=after)

            rows += (await prune(run)).rows
    finally:
        await session.close()
    return rows


def _throughputs(events: int, rounds: int) -> tuple[list[float], list[float], int]:
    plain: list[float] = []
    deleting: list[float] = []
    deleted = 0
    for number in range(rounds):
        for ages, rates in ((KEPT_FOR_EVER, plain), (AGES, deleting)):
            rate, left = _throughput(events, ages)
            rates.append(rate)
            deleted += BACKLOG - left
            report(f"round {number + 1}, {'with' if ages else 'without'} retention: {rate:,.0f}/s")
    return plain, deleting, deleted


BACKLOG_LEFT: LiteralString = "SELECT count(*) FROM webhook_delivery_jobs WHERE worker_id = 'history'"


def _throughput(events: int, ages: dict[str, str]) -> tuple[float, int]:
    """Deliveries a second beside a backlog of finished jobs, and how many of these are left."""
    with temporary_folder() as folder, running_receiver(folder) as receiver:
        with running_on(folder, receiver) as place:
            subscribe(place)
        fill_history(folder, finished=BACKLOG, waiting=0)
        with running_on(folder, receiver, environment=ages) as place:
            return throughput(place, events), place.run(BACKLOG_LEFT)[0][0]


def table(result: Month) -> str:
    days = [
        (day.day, f"{day.tables_kb:,}", f"{day.indexes_kb:,}", f"{day.rows_deleted:,}") for day in result.days
    ]
    lines = [shown(("day", "tables KiB", "indexes KiB", "rows deleted"), days)]
    lines.append(
        f"deletion: {result.rows_per_second:,} rows/s; last day over first full age: {result.growth} times"
    )
    if result.plain_rates:
        plain, deleting = statistics.median(result.plain_rates), statistics.median(result.deleting_rates)
        lines.append(
            f"throughput: {plain:,.0f} deliveries/s without retention, {deleting:,.0f} with it ({result.share} times),"
            f" {result.deleted_beside:,} old jobs deleted meanwhile"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
