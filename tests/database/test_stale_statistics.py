"""A backlog that came after the last statistics: statements still read only the rows that they name or take."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.queries import load_queries

BACKLOG = 20_000
EVERYWHERE = 10_000
"""How many wait at each stage at once."""
TAKEN = 100
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
    """Rows that were read in vain."""
    return _removed(plan_kept(address, role, query, **params))


def plan_kept(address: DatabaseAddress, role: Role, query: str, **params: Any) -> dict[str, Any]:
    """How the sixth run of the prepared statement went: by then its plan is kept."""
    with psycopg.connect(role_conninfo(address, role), autocommit=True, prepare_threshold=0) as connection:
        text = sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) ") + sql.SQL(query)  # type: ignore[arg-type]
        plan: Any = None
        for _ in range(6):
            with connection.transaction(force_rollback=True):
                (plan,) = connection.execute(text, params).fetchone() or ({},)
    return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]


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
            reasons=["an operator canceled it"] * count,
            max_attempts=[5] * count,
        )
        <= MOST_THROWN_AWAY
    )


def with_statistics_of_empty_tables(connection: psycopg.Connection) -> None:
    connection.execute("VACUUM ANALYZE")


def with_statistics_of_a_quiet_moment(connection: psycopg.Connection) -> None:
    """Everything that ever came has been delivered."""
    connection.execute(
        "INSERT INTO events (event_type, payload) SELECT 'old', '{}' FROM generate_series(1, %s)",
        [EVERYWHERE],
    )
    connection.execute(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, attempt_count)"
        " SELECT id, id, 'Completed', 1 FROM events"
    )
    connection.execute(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,"
        " finished_at, applied_at, claim_count, worker_id)"
        " SELECT id, subscription_id, 1, now(), 'Completed', now(), now(), 1, 'w' FROM webhook_delivery_sagas"
    )
    connection.execute("VACUUM ANALYZE")


def with_statistics_after_a_backlog(connection: psycopg.Connection) -> None:
    """Statistics of a time after a delivered backlog: the indexes of waiting rows are large and empty."""
    wait(connection, "InProgress", ("Pending", 1, None, None))
    wait(connection, "InProgress", ("Pending", 2, None, None))
    connection.execute("DELETE FROM routing_outbox")
    connection.execute(
        "UPDATE webhook_delivery_jobs SET status = 'Completed', finished_at = now(), applied_at = now()"
    )
    connection.execute("UPDATE webhook_delivery_sagas SET status = 'Completed'")
    connection.execute("VACUUM ANALYZE")


@pytest.fixture(
    params=[
        with_statistics_of_empty_tables,
        with_statistics_of_a_quiet_moment,
        with_statistics_after_a_backlog,
    ]
)
def backlog_everywhere(request: pytest.FixtureRequest, database_address: DatabaseAddress) -> DatabaseAddress:
    """After the last statistics 10,000 subscriptions got something that waits at every stage."""
    take_statistics: Callable[[psycopg.Connection], None] = request.param
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, eligible_after_event)"
            " SELECT 'type', 'https://a.example/', true, true, 0 FROM generate_series(1, %s)",
            [EVERYWHERE],
        )
        take_statistics(connection)
        wait(connection, "Pending")
        wait(connection, "PendingRetry")
        wait(connection, "InProgress", ("Pending", 1, None, None))
        wait(connection, "InProgress", ("Pending", 2, None, None))
        wait(connection, "InProgress", ("Completed", 1, "-1 second", None))
        wait(connection, "InProgress", ("Leased", 1, None, "-1 second"))
    return database_address


def wait(
    connection: psycopg.Connection,
    status: str,
    job: tuple[str, int, str | None, str | None] | None = None,
) -> None:
    """An event and a saga for each subscription, each with a job: its status, attempt, finish and end of lease."""
    connection.execute(
        """WITH event AS (INSERT INTO events (event_type, payload)
                          SELECT 'unknown', '{}' FROM generate_series(1, %(many)s) RETURNING id),
                waiting AS (INSERT INTO routing_outbox (event_id, created_at) SELECT id, now() FROM event),
                saga AS (INSERT INTO webhook_delivery_sagas
                                (event_id, subscription_id, status, attempt_count, next_attempt_at)
                         SELECT id, row_number() OVER (), %(status)s::saga_status,
                                CASE WHEN %(status)s = 'Pending' THEN 0 ELSE 1 END, now() - interval '1 second'
                           FROM event RETURNING id, subscription_id)
           INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,
                                              finished_at, lease_until, created_at)
           SELECT id, subscription_id, %(attempt)s, now(), %(job)s::job_status, now() + %(finished)s::interval,
                  now() + %(lease)s::interval, now() - interval '1 hour'
             FROM saga WHERE %(job)s::text IS NOT NULL""",
        {
            "many": EVERYWHERE,
            "status": status,
            **dict(zip(("job", "attempt", "finished", "lease"), job or (None,) * 4, strict=True)),
        },
    )


LOOK: dict[str, Any] = {
    "after_subscription": 0,
    "max_subscriptions": TAKEN,
    "default_room": 10,
    "busy_subscriptions": [3],
    "busy_room": [1],
    "most_ids": 1000,
    "passed_by": [],
}
STEPS: list[tuple[Role, str, str, dict[str, Any]]] = [
    (
        Role.ROUTER,
        "route_events",
        "route_outbox",
        {"event_ids": None, "go_on": True}
        | dict.fromkeys(("max_events", "max_sagas", "wide_from", "part_size"), TAKEN),
    ),
    (Role.ROUTER, "route_events", "outbox_age", {}),
    (Role.ORCHESTRATOR, "orchestrate", "lock_waiting_sagas", {"status": "Pending", "limit": TAKEN}),
    (Role.ORCHESTRATOR, "orchestrate", "lock_waiting_sagas", {"status": "PendingRetry", "limit": TAKEN}),
    (Role.ORCHESTRATOR, "orchestrate", "lock_finished_jobs", {"limit": TAKEN}),
    (Role.ORCHESTRATOR, "orchestrate", "oldest_due", {}),
    (Role.ORCHESTRATOR, "orchestrate", "next_attempt_delay", {}),
    (
        Role.ORCHESTRATOR,
        "orchestrate",
        "find_undispatched_jobs",
        {"limit": TAKEN, "grace_seconds": 1, "redispatch_seconds": 60},
    ),
    (Role.DELIVERY, "deliver", "find_waiting_jobs", {"lane": 1, **LOOK}),
    (Role.DELIVERY, "deliver", "find_waiting_jobs", {"lane": 2, **LOOK}),
    (
        Role.LEASE_CLEANER,
        "clean_leases",
        "reset_expired_leases",
        {"limit": TAKEN, "max_lost_leases": 5, "in_hand": [], "job_ids": None},
    ),
]


def test_a_step_reads_what_it_takes(backlog_everywhere: DatabaseAddress) -> None:
    read = [
        (query, params, _read(plan_kept(backlog_everywhere, role, load_queries(stage)[query], **params)))
        for role, stage, query, params in STEPS
    ]
    assert [step for step in read if step[2] > 20 * TAKEN] == []


def test_an_event_reads_the_subscriptions_of_its_type(database_address: DatabaseAddress) -> None:
    """After statistics without any subscription: 10,000 that take another type, and one that takes this."""
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, eligible_after_event)"
            " SELECT CASE n WHEN 1 THEN 'this' ELSE 'other' END, 'https://a.example/', true, true, 0"
            " FROM generate_series(0, %s) AS n",
            [EVERYWHERE],
        )
        connection.execute(
            "WITH event AS (INSERT INTO events (event_type, payload)"
            " SELECT 'this', '{}' FROM generate_series(1, %s) RETURNING id)"
            " INSERT INTO routing_outbox (event_id, created_at) SELECT id, now() FROM event",
            [TAKEN],
        )
    query = load_queries("route_events")["route_outbox"]
    sizes = dict.fromkeys(("max_events", "max_sagas", "wide_from", "part_size"), TAKEN)
    params: dict[str, Any] = {"event_ids": None, "go_on": True, **sizes}
    plan = plan_kept(database_address, Role.ROUTER, query, **params)
    assert _read_from("subscriptions", plan) == TAKEN + 1  # and once to count them


@pytest.mark.parametrize(
    ("dropped", "looks"),
    [
        ("idx_job_pending", ["find_waiting_jobs", "find_waiting_jobs"]),
        ("idx_job_status_lease", ["reset_expired_leases"]),
        ("idx_job_unapplied", ["lock_finished_jobs"]),
        (
            "idx_saga_status_retry",
            ["lock_waiting_sagas", "lock_waiting_sagas", "oldest_due", "next_attempt_delay"],
        ),
    ],
)
def test_no_index_in_another_order_can_serve_a_look(
    database_address: DatabaseAddress, dropped: str, looks: list[str]
) -> None:
    """After the statistics of a quiet moment it would be as good as the right one, and be read at times."""
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(dropped)))
    steps = [
        (role, load_queries(stage)[query], params) for role, stage, query, params in STEPS if query in looks
    ]
    assert len(steps) == len(looks)
    for role, query, params in steps:
        instead = set(_indexes(plan_kept(database_address, role, query, **params)))
        assert {name for name in instead if not name.endswith("_pkey")} == set()


def _indexes(node: dict[str, Any]) -> Iterator[str]:
    if "Index Name" in node:
        yield node["Index Name"]
    for child in node.get("Plans", ()):
        yield from _indexes(child)


def _read_from(table: str, node: dict[str, Any]) -> int:
    own = _own_rows(node) if node.get("Relation Name") == table else 0
    return own + sum(_read_from(table, child) for child in node.get("Plans", ()))


def _own_rows(node: dict[str, Any]) -> int:
    thrown = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    return int((node["Actual Rows"] + thrown) * node["Actual Loops"])


def _read(node: dict[str, Any]) -> int:
    """Rows of tables, those included that a filter threw away."""
    own = node["Actual Rows"] if "Relation Name" in node and "Index" in node["Node Type"] else 0
    thrown = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    return int((own + thrown) * node["Actual Loops"]) + sum(_read(child) for child in node.get("Plans", ()))
