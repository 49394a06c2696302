"""A backlog that came after the last statistics: statements that name rows by id still read those rows only."""

import json
from typing import Any

import psycopg
import pytest
from psycopg import sql

from shared.adapters.database import DatabaseAddress, Role, role_conninfo
from shared.adapters.queries import load_queries

BACKLOG = 20_000
NAMED = 25
MOST_THROWN_AWAY = NAMED * NAMED
"""Rows that were read in vain; a plan that reads the backlog throws nearly all of it away."""


@pytest.fixture
def backlog(database_address: DatabaseAddress) -> DatabaseAddress:
    """Statistics of empty tables, and then 20,000 jobs that wait."""
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_type, callback_url) VALUES ('a', 'https://a.example/')"
        )
        connection.execute(
            "INSERT INTO events (event_type, payload) SELECT 'a', '{}' FROM generate_series(1, %s)", [BACKLOG]
        )
        connection.execute(
            "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status) "
            "SELECT id, 1, 'InProgress' FROM events"
        )
        connection.execute(
            "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at) "
            "SELECT id, 1, 1, now() FROM webhook_delivery_sagas"
        )
    return database_address


def thrown_away(address: DatabaseAddress, role: Role, query: str, **params: Any) -> int:
    """Rows that the sixth run of the prepared statement read in vain: by then its plan is kept."""
    with psycopg.connect(role_conninfo(address, role), autocommit=True, prepare_threshold=0) as connection:
        text = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + sql.SQL(query)  # type: ignore[arg-type]
        plan: Any = None
        for _ in range(6):
            with connection.transaction(force_rollback=True):
                (plan,) = connection.execute(text, params).fetchone() or ({},)
    return _removed((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


def _removed(node: dict[str, Any]) -> int:
    own = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    return int(own * node["Actual Loops"]) + sum(_removed(child) for child in node.get("Plans", ()))


def test_a_claim_reads_the_jobs_that_it_names(backlog: DatabaseAddress) -> None:
    query = load_queries("deliver")["claim_jobs"]
    ids = list(range(BACKLOG - NAMED, BACKLOG))
    assert (
        thrown_away(
            backlog,
            Role.DELIVERY,
            query,
            job_ids=ids,
            worker_id="w",
            lease_seconds=60,
            alone_from=2,
            one_alone=True,
        )
        <= MOST_THROWN_AWAY
    )


def test_starting_attempts_reads_the_sagas_that_it_names(backlog: DatabaseAddress) -> None:
    with psycopg.connect(backlog.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE webhook_delivery_sagas SET status = 'PendingRetry'")
    count = NAMED
    assert (
        thrown_away(
            backlog,
            Role.ORCHESTRATOR,
            load_queries("orchestrate")["start_attempts"],
            saga_ids=list(range(BACKLOG - count, BACKLOG)),
            statuses=["DeadLettered"] * count,
            error_codes=["canceled"] * count,
            max_attempts=[5] * count,
        )
        <= MOST_THROWN_AWAY
    )
