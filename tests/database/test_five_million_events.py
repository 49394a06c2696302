"""Search over five million events: what a page reads does not grow with the table, whatever the filter."""

import asyncio
from typing import Any, LiteralString

import psycopg
import pytest

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.attribute_search import AttributeFilter
from hooksaga.core.event_status import EventStatus
from hooksaga.operations.find_events import EventFilter, EventPage, find_events
from tests.api.running_system import wait_until

pytestmark = [pytest.mark.database, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]

MAX_READ = 150_000
"""Rows: a page scans at most 20,000 positions, and reads the event of each, its deliveries and its dead letters."""

EVENTS = 5_000_000
FILL: tuple[LiteralString, ...] = (
    """INSERT INTO events (tenant_id, event_type, external_id, created_at, payload, attributes)
       SELECT 'tenant-' || n %% 1000, 'type.' || n %% 100, 'key-' || n,
              now() - (%(events)s - n) * interval '1 second', '{}',
              jsonb_build_object('order_id', 'ORD-' || n, 'customer', 'c-' || n %% 10000, 'express', n %% 2 = 0)
         FROM generate_series(1, %(events)s) AS n""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status)
       SELECT n, 1, 'Completed' FROM generate_series(1, %(events)s, 50) AS n""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status)
       SELECT n, 1, 'Pending' FROM generate_series(7, %(events)s, %(events)s / 100) AS n""",
    """INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, payload_snapshot)
       SELECT n, n, 1, 'tenant-' || n %% 1000, 'type.' || n %% 100, '{}'
         FROM generate_series(1, %(events)s, 100) AS n""",
)

SECONDARY_INDEXES: LiteralString = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_index i
     WHERE indrelid = 'events'::regclass
       AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)"""


@pytest.fixture(scope="module")
def many(module_database: str) -> DatabaseAddress:
    with psycopg.connect(module_database, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET maintenance_work_mem = '512MB'")
        indexes = connection.execute(SECONDARY_INDEXES).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}".encode())
        for statement in FILL:
            connection.execute(statement, {"events": EVENTS})
        for _, definition in indexes:
            connection.execute(definition.encode())
        connection.execute("VACUUM (ANALYZE)")
    return DatabaseAddress(module_database)


def pair(name: str | None, value: str) -> AttributeFilter:
    return AttributeFilter(name, (value,))


FILTERS: list[tuple[EventFilter, int]] = [
    (EventFilter(), 50),
    (EventFilter(tenant_id="tenant-7"), 50),
    (EventFilter(tenant_id="tenant-7", event_type="type.7"), 50),
    (EventFilter(tenant_id="nobody"), 0),
    (EventFilter(event_type="type.7"), 50),
    (EventFilter(idempotency_key="key-250000"), 1),
    (EventFilter(tenant_id="tenant-0", idempotency_key="key-250000"), 1),
    (EventFilter(attribute=pair("order_id", '"ORD-250000"')), 1),
    (EventFilter(attribute=pair("customer", '"c-77"')), 50),
    (EventFilter(tenant_id="tenant-77", attribute=pair("customer", '"c-77"')), 50),
    (EventFilter(attribute=pair("express", "true")), 50),
    (EventFilter(tenant_id="tenant-8", attribute=pair("express", "true")), 50),
    (EventFilter(attribute=pair("order_id", '"none"')), 0),
    (EventFilter(status=EventStatus.WAITING), 50),
    (EventFilter(status=EventStatus.DEAD), 50),
    (EventFilter(status=EventStatus.DEAD, tenant_id="tenant-1"), 50),
    (EventFilter(status=EventStatus.NONE), 50),
    (EventFilter(status=EventStatus.DELIVERED), 50),
    (EventFilter(search="key-250000"), 1),
    (EventFilter(search="ORD-250000"), 1),
    (EventFilter(search="…ffffffffffff"), 0),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS, ids=str)
def test_a_page_is_found_by_reading_little(many: DatabaseAddress, wanted: EventFilter, found: int) -> None:
    begin = _rows_read(many)
    page = asyncio.run(_page(many, wanted))
    assert len(page.items) == found
    assert _rows_read(many) - begin <= MAX_READ


async def _page(address: DatabaseAddress, wanted: EventFilter) -> EventPage:
    session = Session(address, Role.ADMIN)
    try:
        return await session.run(lambda connection: find_events(connection, wanted))
    finally:
        await session.close()


def _rows_read(address: DatabaseAddress) -> int:
    """Rows that sessions have read from the tables: what a session has read is counted when it ends."""
    with psycopg.connect(address.url, autocommit=True) as connection:
        others = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        wait_until(lambda: not connection.execute(others).fetchall(), "no other session is open")
        row: Any = connection.execute(
            "SELECT sum(seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_user_tables"
        ).fetchone()
        return int(row[0] or 0)
