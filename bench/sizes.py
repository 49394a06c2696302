"""Where the bytes of an event and of its delivery are: tables, indexes and columns in PostgreSQL, and its log (WAL).

    .venv/bin/python -m bench.sizes [--deliveries 20000] [--open 1000] [--columns] [--json]

Events of 600 bytes go through all stages to one subscription, in batches of 100 at most, on a database with the
settings of `hooksaga up`. `--open`: how many are accepted before they are delivered, as behind a backlog. Measured
after 10,000 others, because free space is used again only then. VACUUM runs every 5,000 deliveries instead of
autovacuum, so that two runs are alike; what it writes to the log is not counted. Bytes on disk are whole pages.
"""

import argparse
import asyncio
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
from psycopg import sql

from bench.figures import as_json, shown
from bench.stages import Chain, Stage
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.migrations import migrate
from hooksaga.local.bench_place import own_folder
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.runtime.settings import read_settings
from hooksaga.runtime.telemetry import logger
from hooksaga.worker import event_loop

WARM_UP = 10_000
VACUUM_EVERY = 5_000
BATCH = 100
TABLES = ["events", "routing_outbox", "routing_decisions", "webhook_delivery_sagas", "webhook_delivery_jobs"]
NO_AUTOVACUUM = "ALTER TABLE {} SET (autovacuum_enabled = off)"
LSN = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
RELATIONS = """
SELECT t.relname, c.relname, pg_relation_size(c.oid)
  FROM pg_class t
  JOIN pg_class c ON c.oid IN (t.oid, t.reltoastrelid)
       OR c.oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN (t.oid, t.reltoastrelid))
 WHERE t.relname = ANY (%(tables)s) AND t.relkind = 'r'
 ORDER BY array_position(%(tables)s, t.relname::text), c.relkind DESC, c.relname"""
UPDATES = """
SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_newpage_upd
  FROM pg_stat_user_tables WHERE relname = ANY (%(tables)s) ORDER BY array_position(%(tables)s, relname::text)"""
COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
MEAN = "coalesce(round(avg(coalesce(pg_column_size({}), 0)), 1), 0)::float8"

UPDATED = ("inserted", "updated", "hot", "moved")

Owner = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes on disk per event by table and index, updates by table, bytes of the log per event by stage, and the mean
    size of each column; `whole` is the row with its header."""

    relations: dict[str, dict[str, float]]
    updates: dict[str, dict[str, int]]
    log: dict[str, int]
    columns: dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=20_000)
    parser.add_argument("--open", type=int, default=1_000, help="deliveries that are open at a time")
    parser.add_argument("--columns", action="store_true", help="the mean size of each column too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logger.setLevel("CRITICAL")
    found = event_loop.run(measure(options.deliveries, options.open))
    print(as_json(asdict(found)) if options.json else text(found, columns=options.columns))


async def measure(deliveries: int, at_once: int, warm_up: int = WARM_UP) -> Sizes:
    """Deliver `warm_up` and then `deliveries` events, `at_once` open at a time, and measure the latter."""
    async with own_folder(read_settings().data_dir) as folder:
        url = await asyncio.to_thread(EmbeddedPostgres(folder).start)
        address = DatabaseAddress(url, prepare=True)
        await asyncio.to_thread(migrate, address)
        chain = Chain(address, at_once, BATCH)
        await chain.prepare(None)
        with psycopg.connect(url, autocommit=True) as owner:
            for table in TABLES:
                owner.execute(sql.SQL(NO_AUTOVACUUM).format(sql.Identifier(table)))
            await _deliver(chain, owner, max(1, warm_up // at_once))
            before = _sizes(owner)
            rounds = max(1, deliveries // at_once)
            log = await _deliver(chain, owner, rounds)
            await chain.close()
            return _found(owner, before, log, rounds * at_once)


async def _deliver(chain: Chain, owner: Owner, rounds: int) -> Counter[str]:
    """Return the bytes of the log of each stage."""
    log: Counter[str] = Counter()

    async def run(name: str, stage: Stage) -> int:
        before = _lsn(owner)
        done = await stage()
        log[name] += _lsn(owner) - before
        return done

    delivered = 0
    for turn in range(1, rounds + 1):
        await run("accept", chain.accept)
        await run("route", chain.route)
        while await run("start", chain.start):
            await run("claim", chain.claim)
            await run("record", chain.record)
            delivered += await run("apply", chain.apply)
        if delivered >= VACUUM_EVERY or turn == rounds:
            owner.execute(sql.SQL("VACUUM (ANALYZE) {}").format(_names(TABLES)))
            delivered = 0
    return log


def _names(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _lsn(owner: Owner) -> int:
    ((lsn,),) = owner.execute(LSN)
    return lsn


def _sizes(owner: Owner) -> dict[tuple[str, str], int]:
    return {(table, name): size for table, name, size in owner.execute(RELATIONS, {"tables": TABLES})}


def _found(owner: Owner, before: dict[tuple[str, str], int], log: Counter[str], events: int) -> Sizes:
    relations: dict[str, dict[str, float]] = {table: {} for table in TABLES}
    for (table, name), size in _sizes(owner).items():
        relations[table][name] = round((size - before[table, name]) / events, 1)
    updates = owner.execute(UPDATES, {"tables": TABLES})
    return Sizes(
        relations,
        {name: dict(zip(UPDATED, counts, strict=True)) for name, *counts in updates},
        {name: round(size / events) for name, size in log.items()},
        {table: _columns(owner, table) for table in TABLES},
    )


def _columns(owner: Owner, table: str) -> dict[str, float]:
    names = [name for (name,) in owner.execute(COLUMNS, [table])]
    parts = [sql.SQL("t.*"), *map(sql.Identifier, names)]
    means = sql.SQL(", ").join(sql.SQL(MEAN).format(part) for part in parts)
    (row,) = owner.execute(sql.SQL("SELECT {} FROM {} AS t").format(means, sql.Identifier(table)))
    return dict(zip(["whole", *names], row, strict=True))


def text(found: Sizes, *, columns: bool) -> str:
    """Return the figures as tables, without the indexes that this traffic does not grow."""
    sizes = [
        (table, name, size)
        for table, of_table in found.relations.items()
        for name, size in of_table.items()
        if size
    ]
    totals = [(table, round(sum(of_table.values()))) for table, of_table in found.relations.items()]
    totals.append(("all", sum(size for _, size in totals)))
    tables = [
        shown(("table", "table or index", "bytes per event"), sizes),
        shown(("table", "bytes with indexes"), totals),
        shown(
            ("table", "inserted", "updated", "HOT", "to another page"),
            [(name, *row.values()) for name, row in found.updates.items()],
        ),
        shown(("stage", "bytes of the log"), [*found.log.items(), ("all", sum(found.log.values()))]),
    ]
    if columns:
        tables += [
            shown((f"column of {table}", "bytes"), [*of.items()]) for table, of in found.columns.items()
        ]
    return "\n\n".join(tables)


if __name__ == "__main__":
    main()
