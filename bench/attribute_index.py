"""What an index of event attributes costs, in processor time and bytes per event, and how long searches take with it.

    .venv/bin/python -m bench.attribute_index [--events 500000] [--batch 100] [--json]

Each kind gets a table of its own with the columns and indexes of `events`, and the same events with three attributes:
one of a value of its own, one of 1,000 values, and one of two. They are inserted in batches, one transaction each. The
kinds take turns, so that what else the machine does falls on all of them.
"""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from bench.figures import shown
from bench.place import empty_database, parser_of, run_command

ROUNDS = 20
"""Turns of each kind."""

NONE, PATHS, JSONB, HASHES, TABLE = (
    "no index",
    "gin jsonb_path_ops",
    "gin jsonb_ops",
    "gin of hashes",
    "table",
)

_HASHES: LiteralString = """
    CREATE FUNCTION hashes_of(attributes jsonb) RETURNS bigint[] LANGUAGE sql IMMUTABLE STRICT
    RETURN ARRAY(SELECT hashtextextended(value, 0) FROM jsonb_each_text(attributes))"""

INDEXES: dict[str, LiteralString] = {
    NONE: "SELECT 1",
    PATHS: """CREATE INDEX attributes_1 ON events_1 USING gin (attributes jsonb_path_ops)
        WITH (gin_pending_list_limit = 256)""",
    JSONB: "CREATE INDEX attributes_2 ON events_2 USING gin (attributes) WITH (gin_pending_list_limit = 256)",
    HASHES: """CREATE INDEX attributes_3 ON events_3 USING gin (hashes_of(attributes))
        WITH (gin_pending_list_limit = 256)""",
    TABLE: """CREATE TABLE attributes_4 (
        value_hash bigint NOT NULL, event_id bigint NOT NULL, PRIMARY KEY (value_hash, event_id))""",
}
_FILL: LiteralString = """
    INSERT INTO {events} (tenant_id, event_type, payload, attributes)
    SELECT 'tenant-' || n %% 20, 'type.' || n %% 50, '{{"n": 1}}',
           jsonb_build_object('order_id', 'ORD-' || n, 'customer', 'c-' || n * 7919 %% 1000, 'express', n %% 2 = 0)
      FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
    RETURNING id, attributes"""
_FILL_TABLE: LiteralString = """
    WITH made AS ({fill}), named AS (
        INSERT INTO attributes_4 (value_hash, event_id)
        SELECT DISTINCT hashtextextended(value, 0), id FROM made, jsonb_each_text(attributes)
        RETURNING 1)
    SELECT count(*) FROM named"""
_SEARCHES: dict[str, LiteralString] = {
    NONE: "SELECT 1",
    PATHS: "SELECT id FROM events_1 WHERE attributes @> %(pair)s::jsonb ORDER BY id DESC LIMIT 50",
    JSONB: "SELECT id FROM events_2 WHERE attributes @> %(pair)s::jsonb ORDER BY id DESC LIMIT 50",
    HASHES: """SELECT id FROM events_3 WHERE hashes_of(attributes) @> ARRAY[hashtextextended(%(value)s, 0)]
                ORDER BY id DESC LIMIT 50""",
    TABLE: """SELECT e.id FROM (SELECT event_id FROM attributes_4 WHERE value_hash = hashtextextended(%(value)s, 0)
                ORDER BY event_id DESC LIMIT 50) AS a JOIN events_4 e ON e.id = a.event_id""",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """cpu_microseconds: of the server, for the whole INSERT of an event. log_bytes and stored_bytes: per event, beyond
    those without an index. rare_ms and common_ms: the search for a value of one event, and of every second event."""

    kind: str
    cpu_microseconds: float
    log_bytes: int
    stored_bytes: float
    rare_ms: float
    common_ms: float


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--events", type=int, default=500_000, help="of each kind")
    parser.add_argument("--batch", type=int, default=100, help="events of a transaction")
    options = parser.parse_args()
    run_command(lambda: _measure(options.events, options.batch), table, json=options.json)


def _measure(events: int, batch: int) -> list[Measured]:
    with empty_database() as url, psycopg.connect(url, autocommit=True) as connection:
        return measure(connection, events, batch)


_GIN_INDEXES: LiteralString = """
    SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
     WHERE i.indrelid = %s::regclass AND a.amname = 'gin'"""
"""The index of the schema itself, which the copies of the table have too."""


def measure(connection: psycopg.Connection, events: int, batch: int) -> list[Measured]:
    """Fill the tables in turns, then search them."""
    connection.execute(_HASHES)
    for number, index in enumerate(INDEXES.values()):
        table = sql.Identifier(f"events_{number}")
        connection.execute(sql.SQL("CREATE TABLE {} (LIKE events INCLUDING ALL)").format(table))
        for (copied,) in connection.execute(_GIN_INDEXES, [f"events_{number}"]).fetchall():
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(copied)))
        connection.execute(index)
    per_turn = max(events // ROUNDS, batch)
    seconds, log = dict.fromkeys(INDEXES, 0.0), dict.fromkeys(INDEXES, 0)
    for turn in range(ROUNDS):
        for number, kind in enumerate(INDEXES):
            begin, written = _processor_seconds(connection), _log_position(connection)
            for first in range(turn * per_turn, (turn + 1) * per_turn, batch):
                _fill(connection, number, kind, first, first + batch - 1)
            seconds[kind] += _processor_seconds(connection) - begin
            log[kind] += _log_position(connection) - written
    connection.execute("VACUUM (ANALYZE)")
    stored = per_turn * ROUNDS
    sizes = {kind: _size(connection, number) / stored for number, kind in enumerate(INDEXES)}
    return [
        Measured(
            kind,
            round(seconds[kind] / stored * 1e6, 1),
            round((log[kind] - log[NONE]) / stored),
            round(sizes[kind] - sizes[NONE], 1),
            _milliseconds(connection, kind, '{"order_id": "ORD-77"}', "ORD-77"),
            _milliseconds(connection, kind, '{"express": true}', "true"),
        )
        for kind in INDEXES
    ]


def _fill(connection: psycopg.Connection, number: int, kind: str, first: int, last: int) -> None:
    fill = sql.SQL(_FILL).format(events=sql.Identifier(f"events_{number}"))
    statement = sql.SQL(_FILL_TABLE).format(fill=fill) if kind == TABLE else fill
    connection.execute(statement, {"first": first, "last": last})


def _processor_seconds(connection: psycopg.Connection) -> float:
    """Processor time of the session's process so far: what waits for a processor does not count."""
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _log_position(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
    assert row is not None
    return int(row[0])


def _size(connection: psycopg.Connection, number: int) -> int:
    query = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname = ANY (%s)"
    row = connection.execute(query, [[f"events_{number}", f"attributes_{number}"]]).fetchone()
    assert row is not None
    return int(row[0])


def _milliseconds(connection: psycopg.Connection, kind: str, pair: str, value: str) -> float:
    def once() -> float:
        begin = time.perf_counter()
        connection.execute(_SEARCHES[kind], {"pair": pair, "value": value}).fetchall()
        return (time.perf_counter() - begin) * 1000

    return round(statistics.median(once() for _ in range(11)), 2)


def table(measured: Sequence[Measured]) -> str:
    """The kinds beside each other."""
    columns = ("kind", "CPU µs", "log bytes", "stored bytes", "rare value ms", "common value ms")
    return shown(columns, [astuple(one) for one in measured])


if __name__ == "__main__":
    main()
