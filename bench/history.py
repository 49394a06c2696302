"""Years of work in a database: finished jobs with their sagas and events, and sagas that wait for a retry.

Rows are made in a few statements as the owner, with triggers and foreign keys off, and indexes are built at the end;
they are consistent all the same. None of them is due.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import psycopg

EVENT_TYPE = "bench.history"
SUBSCRIPTIONS = 50
FAN_OUT = 5
"""So many sagas of each event."""

TABLES = ("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "routing_decisions")

EVENTS: LiteralString = """
    INSERT INTO events (event_type, created_at, payload, external_id)
    SELECT %(event_type)s, %(begin)s + n * %(length)s / %(events)s,
           ('{"number":' || n || ',"filler":"' || repeat('x', 570) || '"}')::json,
           CASE WHEN %(keyed)s THEN gen_random_uuid() END
      FROM generate_series(1, %(events)s) AS n"""

ROUTED: LiteralString = """
    INSERT INTO routing_decisions (event_id, routed_at, newest_change, snapshot, sagas_started)
    SELECT id, created_at, 0, pg_current_snapshot(), %(fan_out)s
      FROM events WHERE event_type = %(event_type)s AND created_at >= %(begin)s"""

SAGAS: LiteralString = """
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, attempt_count, next_attempt_at,
                                        final_error_code, created_at, updated_at)
    SELECT e.id, s.id, CASE WHEN failed THEN %(failed_as)s ELSE 'Completed' END::saga_status, 1,
           CASE WHEN failed AND %(failed_as)s = 'PendingRetry'
                THEN now() + interval '1 day' + e.place %% 86400 * interval '1 second' ELSE e.created_at END,
           CASE WHEN failed THEN 'http_503' END, e.created_at, e.created_at + interval '1 second'
      FROM (SELECT id, created_at, row_number() OVER (ORDER BY id) AS place FROM events
             WHERE event_type = %(event_type)s AND created_at >= %(begin)s) AS e
     CROSS JOIN generate_series(0, %(fan_out)s - 1) AS copy
      JOIN unnest(%(subscription_ids)s::bigint[]) WITH ORDINALITY AS s (id, place)
        ON s.place = 1 + (e.place + copy) %% %(subscriptions)s
     CROSS JOIN LATERAL (SELECT copy * %(events)s + e.place <= %(failed)s AS failed) AS state"""

JOBS: LiteralString = """
    INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, max_attempts, status,
              claim_count, worker_id, response_status, error_code, duration_ms, resolved_ip, created_at, leased_at,
              finished_at, response_body)
    SELECT id, subscription_id, 1, created_at, 5,
           CASE WHEN status = 'Completed' THEN 'Completed' ELSE 'Failed' END::job_status, 1, 'history',
           CASE WHEN status = 'Completed' THEN 200 ELSE 503 END, final_error_code, 12, '192.0.2.1', created_at,
           created_at, updated_at, %(body)s::text
      FROM webhook_delivery_sagas WHERE subscription_id = ANY (%(subscription_ids)s) AND created_at >= %(begin)s"""

SECONDARY_INDEXES: LiteralString = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_index i
     WHERE indrelid = ANY (%s::regclass[])
       AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)"""


@dataclass(frozen=True, slots=True)
class History:
    """Events of a time, whose jobs have finished. failed: how many of the first attempts failed, and failed_as: what
    their sagas are now. keyed: the events have idempotency keys. body: of the answers."""

    begin: datetime
    length: timedelta
    events: int
    failed: int
    failed_as: str = "PendingRetry"
    fan_out: int = FAN_OUT
    keyed: bool = False
    body: str | None = None


def insert(connection: psycopg.Connection, history: History, subscription_ids: Sequence[int]) -> None:
    """Insert its rows for SUBSCRIPTIONS subscriptions, in the caller's transaction."""
    more = {
        "event_type": EVENT_TYPE,
        "subscriptions": SUBSCRIPTIONS,
        "subscription_ids": list(subscription_ids),
    }
    for statement in (EVENTS, ROUTED, SAGAS, JOBS):
        connection.execute(statement, {**asdict(history), **more})


def fill(url: str, subscription_ids: Sequence[int], *, finished: int, waiting: int) -> None:
    """finished jobs, of which as many as wait failed, for SUBSCRIPTIONS subscriptions that nothing else is sent to.

    finished is rounded down to whole events of FAN_OUT sagas. Takes a superuser.
    """
    history = History(
        datetime.now(UTC) - timedelta(days=31), timedelta(days=30), finished // FAN_OUT, waiting
    )
    with psycopg.connect(url, autocommit=True) as connection:
        indexes = connection.execute(SECONDARY_INDEXES, [list(TABLES)]).fetchall()
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
            connection.execute("SET LOCAL statement_timeout = 0")
            for name, _ in indexes:
                connection.execute(f"DROP INDEX {name}".encode())
            insert(connection, history, subscription_ids)
            for _, definition in indexes:
                connection.execute(definition.encode())
        connection.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}".encode())
        connection.execute("CHECKPOINT")
