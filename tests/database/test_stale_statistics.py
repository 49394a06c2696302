"""A backlog that came after the last statistics: statements still read only the rows that they name or take."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.queries import load_queries
from hooksaga.core.flow import Flow
from tests.conftest import copy_of
from tests.database.pattern_rows import PATTERNS

BACKLOG = 20_000
EVERYWHERE = 10_000
"""How many wait at each stage at once."""
TAKEN = 100
NAMED = 25
MAX_THROWN_AWAY = NAMED * NAMED
"""Rows that were read in vain; a plan that reads the backlog throws nearly all of it away."""


@pytest.fixture
def backlog(database_address: DatabaseAddress) -> DatabaseAddress:
    """Statistics of empty tables, and then 20,000 jobs that wait."""
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_types, callback_url) VALUES ('{a}', 'https://a.example/')"
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
        <= MAX_THROWN_AWAY
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
        " finished_at, claim_count, worker_id)"
        " SELECT id, subscription_id, 1, now(), 'Completed', now(), 1, 'w' FROM webhook_delivery_sagas"
    )
    connection.execute("VACUUM ANALYZE")


def with_statistics_after_a_backlog(connection: psycopg.Connection) -> None:
    """Statistics of a time after a delivered backlog: the indexes of waiting rows are large and empty."""
    wait(connection, "InProgress", ("Pending", 1, None, None))
    wait(connection, "InProgress", ("Pending", 2, None, None))
    connection.execute("DELETE FROM routing_outbox")
    connection.execute("UPDATE webhook_delivery_jobs SET status = 'Completed', finished_at = now()")
    connection.execute("UPDATE webhook_delivery_sagas SET status = 'Completed'")
    connection.execute("VACUUM ANALYZE")


STATISTICS = [
    pytest.param(with_statistics_of_empty_tables, marks=pytest.mark.long),
    pytest.param(with_statistics_of_a_quiet_moment, marks=pytest.mark.long),
    with_statistics_after_a_backlog,
]


@pytest.fixture(scope="module", params=STATISTICS)
def waiting_everywhere(
    request: pytest.FixtureRequest, test_server: str, maintenance: psycopg.Connection
) -> Iterator[str]:
    """Name of the database that `backlog_everywhere` is a copy of."""
    with copy_of(maintenance, "hooksaga") as name:
        _wait_everywhere(make_conninfo(test_server, dbname=name), request.param)
        yield name


@pytest.fixture
def backlog_everywhere(
    test_server: str, maintenance: psycopg.Connection, waiting_everywhere: str
) -> Iterator[DatabaseAddress]:
    """After the last statistics 10,000 subscriptions got something that waits at every stage."""
    with copy_of(maintenance, waiting_everywhere) as name:
        yield DatabaseAddress(make_conninfo(test_server, dbname=name))


def _wait_everywhere(url: str, take_statistics: Callable[[psycopg.Connection], None]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_types, callback_url, active, verified, eligible_after_event)"
            " SELECT '{type}', 'https://a.example/', true, true, 0 FROM generate_series(1, %s)",
            [EVERYWHERE],
        )
        connection.execute("INSERT INTO subscription_flow (subscription_id) SELECT id FROM subscriptions")
        take_statistics(connection)
        connection.execute("UPDATE subscription_flow SET wake_at = now() - interval '1 second'")
        wait(connection, "Pending")
        wait(connection, "PendingRetry")
        wait(connection, "InProgress", ("Pending", 1, None, None))
        wait(connection, "InProgress", ("Pending", 2, None, None))
        wait(connection, "InProgress", ("Completed", 1, "-1 second", None))
        wait(connection, "InProgress", ("Leased", 1, None, "-1 second"))


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
                           FROM event RETURNING id, subscription_id, next_attempt_at)
           INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,
                                              finished_at, lease_until, created_at)
           SELECT id, subscription_id, %(attempt)s, next_attempt_at, %(job)s::job_status,
                  now() + %(finished)s::interval, now() + %(lease)s::interval, now() - interval '1 hour'
             FROM saga WHERE %(job)s::text IS NOT NULL""",
        {
            "many": EVERYWHERE,
            "status": status,
            **dict(zip(("job", "attempt", "finished", "lease"), job or (None,) * 4, strict=True)),
        },
    )


IDS = list(range(1, TAKEN + 1))
FLOW_OF: dict[str, Any] = {
    "flow_subscription_id": IDS,
    "flow_version": [0] * TAKEN,
    **{
        f"flow_{name}": [value] * TAKEN
        for name, value in msgspec.structs.asdict(Flow(failures_in_a_row=1)).items()
    },
}


def starting(ids: Sequence[int], starts: int = 1, **changed: Any) -> dict[str, Any]:
    return {
        "subscription_ids": list(ids),
        "in_flight": [1000] * len(ids),
        "starts": [starts] * len(ids),
        "versions": [0] * len(ids),
        "probes": [False] * len(ids),
        "tokens": [None] * len(ids),
        "tokens_at": datetime.now(UTC),
        "slow": [False] * len(ids),
        "max_attempts": [5] * len(ids),
        "has_ordered": [True] * len(ids),
        "cursors": [""] * len(ids),
        "most_keys": 1000,
        "only": None,
        **changed,
    }


def ending(ids: Sequence[int], **changed: Any) -> dict[str, Any]:
    return {
        "subscription_ids": list(ids),
        "due_before": [datetime.now(UTC)] * len(ids),
        "through": [2**63 - 1] * len(ids),
        "causes": ["discarded"] * len(ids),
        "limit": 2,
        "only": None,
        **changed,
    }


def applying(first_saga: int, attempt_at: datetime) -> dict[str, Any]:
    """Results of TAKEN sagas, whose attempts were due at the same time."""
    return {
        "saga_ids": list(range(first_saga, first_saga + TAKEN)),
        "attempts_at": [attempt_at] * TAKEN,
        "statuses": ["Completed"] * TAKEN,
        "attempt_counts": [2] * TAKEN,
        "next_attempts": [datetime.now(UTC)] * TAKEN,
        "error_codes": [None] * TAKEN,
        "reasons": [None] * TAKEN,
        "subscription_ids": IDS,
        "change_flow": [True] * TAKEN,
        **FLOW_OF,
    }


OF_ONE_SUBSCRIPTION = {"idx_secret_subscription", "idx_saga_status", "idx_saga_status_retry"}
"""Read for the subscription of a row that was found."""

MAY_SORT = ("claim_waiting_jobs", "reset_expired_leases", "unapplied_results")
"""After statistics of empty tables these read all waiting or leased jobs, or all sagas in progress, and sort them. The
orchestrator starts only as many as there are places for, so all are few."""

CLAIM = {"limit": TAKEN, "worker_id": "w", "lease_seconds": 60, "alone_from": 2, "one_alone": True}
STEPS: list[tuple[Role, str, str, dict[str, Any]]] = [
    (
        Role.ROUTER,
        "route_events",
        "route_outbox",
        {"event_ids": None, "go_on": True}
        | dict.fromkeys(("max_events", "max_sagas", "wide_from", "part_size"), TAKEN),
    ),
    (Role.ROUTER, "route_events", "outbox_age", {}),
    (Role.ORCHESTRATOR, "orchestrate", "flow_to_start", {"subscription_ids": IDS, "most_woken": 0}),
    (Role.ORCHESTRATOR, "orchestrate", "flow_to_start", {"subscription_ids": [], "most_woken": TAKEN}),
    (Role.ORCHESTRATOR, "orchestrate", "lock_flow", {"subscription_ids": IDS, "versions": [0] * len(IDS)}),
    (Role.ORCHESTRATOR, "orchestrate", "start_due", starting(IDS)),
    (Role.ORCHESTRATOR, "orchestrate", "start_due_with_rules", starting(IDS)),
    (Role.ORCHESTRATOR, "orchestrate", "end_waiting", ending(IDS)),
    (Role.ORCHESTRATOR, "orchestrate", "write_flow", FLOW_OF),
    (Role.ORCHESTRATOR, "orchestrate", "waiting_subscriptions", {"after": 0, "limit": TAKEN}),
    (Role.ORCHESTRATOR, "orchestrate", "next_wake", {}),
    (
        Role.ORCHESTRATOR,
        "orchestrate",
        "unapplied_results",
        {"limit": TAKEN, "after_subscription": 0, "after_saga": 0},
    ),
    (
        Role.ORCHESTRATOR,
        "orchestrate",
        "find_undispatched_jobs",
        {"limit": TAKEN, "grace_seconds": 1, "redispatch_seconds": 60},
    ),
    (Role.DELIVERY, "deliver", "claim_waiting_jobs", {"slow": False, **CLAIM}),
    (Role.DELIVERY, "deliver", "claim_waiting_jobs", {"slow": True, **CLAIM}),
    (
        Role.LEASE_CLEANER,
        "clean_leases",
        "reset_expired_leases",
        {"limit": TAKEN, "max_lost_leases": 5, "in_hand": [], "job_ids": None},
    ),
]


def test_a_step_reads_what_it_takes(backlog_everywhere: DatabaseAddress) -> None:
    read = [
        (
            query,
            params,
            _read(
                plan_kept(backlog_everywhere, role, load_queries(stage)[query], **params),
                "Index" if query in MAY_SORT else "Scan",
            ),
        )
        for role, stage, query, params in STEPS
    ]
    assert [step for step in read if step[2] > 20 * TAKEN] == []


@pytest.mark.parametrize("statement", ["apply_results", "apply_results_and_flow"])
def test_results_are_applied_to_the_rows_that_they_name(
    backlog_everywhere: DatabaseAddress, statement: str
) -> None:
    with psycopg.connect(backlog_everywhere.url) as connection:
        connection.execute("SET session_replication_role = replica")
        row = connection.execute(
            "SELECT s.id, s.next_attempt_at FROM webhook_delivery_jobs j"
            "  JOIN webhook_delivery_sagas s ON s.id = j.saga_id AND s.next_attempt_at = j.attempt_at"
            " WHERE j.status = 'Completed' AND s.status = 'InProgress' ORDER BY j.id LIMIT 1"
        ).fetchone()
        assert row is not None
    plan = plan_kept(
        backlog_everywhere, Role.ORCHESTRATOR, load_queries("orchestrate")[statement], **applying(*row)
    )
    assert (_read_from("subscription_flow", plan) > 0) == (statement == "apply_results_and_flow")
    assert _read_from("webhook_delivery_sagas", plan) > 0
    assert _read(plan) <= 20 * TAKEN


def test_the_oldest_due_is_one_of_each_subscription_that_waits(backlog_everywhere: DatabaseAddress) -> None:
    """It is asked once a minute."""
    plan = plan_kept(backlog_everywhere, Role.ORCHESTRATOR, load_queries("orchestrate")["oldest_due"])
    assert _read(plan) <= 10 * EVERYWHERE


@pytest.fixture(params=STATISTICS)
def one_crowd(request: pytest.FixtureRequest, database_address: DatabaseAddress) -> DatabaseAddress:
    """After the last statistics, of 10,000 subscriptions the first got 20,000 sagas while it was paused, the second as
    many of one ordering key, the third one of each of 5,000 keys, and the fourth one saga, which is due."""
    take_statistics: Callable[[psycopg.Connection], None] = request.param
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_types, callback_url, active, verified, eligible_after_event, ordered,"
            " paused_at) SELECT '{type}', 'https://a.example/', true, true, 0, n IN (2, 3),"
            " CASE n WHEN 1 THEN now() END FROM generate_series(1, %s) AS n",
            [EVERYWHERE],
        )
        connection.execute("INSERT INTO subscription_flow (subscription_id) SELECT id FROM subscriptions")
        take_statistics(connection)
        connection.execute(
            "INSERT INTO events (event_type, payload) SELECT 'crowd', '{}' FROM generate_series(1, %s)",
            [BACKLOG],
        )
        connection.execute(
            "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, ordering_key, next_attempt_at)"
            " SELECT e.id, s.id, CASE s.id WHEN 2 THEN 'one' WHEN 3 THEN 'key ' || e.id END,"
            " now() - interval '1 second'"
            " FROM (SELECT id, row_number() OVER (ORDER BY id) AS nth FROM events WHERE event_type = 'crowd') AS e,"
            " (VALUES (1, 20000), (2, 20000), (3, 5000), (4, 1)) AS s (id, many) WHERE e.nth <= s.many"
        )
    return database_address


CROWD_STEPS: list[tuple[Role, str, dict[str, Any], int]] = [
    (Role.ORCHESTRATOR, "flow_to_start", {"subscription_ids": [1, 2, 3, 4], "most_woken": TAKEN}, 20),
    (Role.ORCHESTRATOR, "start_due", starting([4], 10), 20),
    (Role.ORCHESTRATOR, "start_due", starting([1], 10), 200),
    (Role.ORCHESTRATOR, "start_due_with_rules", starting([1], 1, probes=[True]), 300),
    (Role.ORCHESTRATOR, "start_due_with_rules", starting([2], 10), 20),
    (Role.ORCHESTRATOR, "start_due_with_rules", starting([3], 10), 200),
    (Role.ORCHESTRATOR, "start_due_with_rules", starting([3], 10, cursors=["key 9"]), 200),
    (Role.ORCHESTRATOR, "start_due_with_rules", starting([1, 2, 3, 4], 10), 500),
    (Role.ORCHESTRATOR, "end_waiting", ending([1], limit=10), 100),
    (Role.ORCHESTRATOR, "end_waiting", ending([2, 4], limit=10), 100),
    (Role.ORCHESTRATOR, "waiting_subscriptions", {"after": 0, "limit": TAKEN}, 30),
    (Role.ORCHESTRATOR, "oldest_due", {}, 30),
    (Role.ORCHESTRATOR, "next_wake", {}, 5),
]


def test_a_crowd_that_waits_costs_what_is_started_of_it(one_crowd: DatabaseAddress) -> None:
    orchestrate = load_queries("orchestrate")
    read = [
        (query, params, most, _read(plan_kept(one_crowd, role, orchestrate[query], **params)))
        for role, query, params, most in CROWD_STEPS
    ]
    assert [step for step in read if step[3] > step[2]] == []


def test_closed_subscriptions_with_backlogs_cost_an_open_one_nothing(
    backlog_everywhere: DatabaseAddress,
) -> None:
    """Nobody looks at them until their time has come."""
    with psycopg.connect(backlog_everywhere.url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE subscriptions SET paused_at = now() WHERE id > 1")
        connection.execute("UPDATE subscription_flow SET wake_at = NULL WHERE subscription_id > 1")
    orchestrate = load_queries("orchestrate")
    look = plan_kept(
        backlog_everywhere,
        Role.ORCHESTRATOR,
        orchestrate["flow_to_start"],
        subscription_ids=[],
        most_woken=TAKEN,
    )
    start = plan_kept(backlog_everywhere, Role.ORCHESTRATOR, orchestrate["start_due"], **starting([1], 10))
    assert _read_from("subscription_flow", look) <= 4
    assert _read(look) <= 12
    assert _read(start) <= 50


@pytest.mark.parametrize("filtered", [False, True])
def test_an_event_reads_the_subscriptions_of_its_type(
    database_address: DatabaseAddress, filtered: bool
) -> None:
    """After statistics without any subscription: 10,000 that take others, and one for each pattern that matches. The
    filters of these are read once for all events, by key."""
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("SET session_replication_role = replica")
        connection.execute(
            "INSERT INTO subscriptions (event_types, callback_url, active, verified, eligible_after_event)"
            " SELECT CASE n WHEN 0 THEN '{this.one}' WHEN 1 THEN '{this.*}' WHEN 2 THEN '{*,hooksaga.*}'"
            " ELSE '{other,this.other,that.*}' END::varchar[], 'https://a.example/', true, true, 0"
            " FROM generate_series(0, %s) AS n",
            [EVERYWHERE],
        )
        if filtered:
            connection.execute("UPDATE subscriptions SET filter = '{}', filter_path = 'exists($.a)'")
        connection.execute(PATTERNS)
        connection.execute(
            "WITH event AS (INSERT INTO events (event_type, payload)"
            " SELECT 'this.one', '{}' FROM generate_series(1, %s) RETURNING id)"
            " INSERT INTO routing_outbox (event_id, created_at) SELECT id, now() FROM event",
            [TAKEN],
        )
    query = load_queries("route_events")["route_outbox"]
    sizes = dict.fromkeys(("max_events", "max_sagas", "wide_from", "part_size"), TAKEN)
    params: dict[str, Any] = {"event_ids": None, "go_on": True, **sizes}
    plan = plan_kept(database_address, Role.ROUTER, query, **params)
    assert _read_from("subscription_patterns", plan) == 3  # once for all events of the type
    assert _read_from("subscriptions", plan) == 0
    if filtered:  # they match no event, so there is no saga whose reference is checked
        assert _read_by_functions(database_address, query, params) == 3


def _read_by_functions(address: DatabaseAddress, query: str, params: dict[str, Any]) -> int:
    """Rows of subscriptions that the router reads with the statement, by key; none otherwise."""
    counted = (
        "SELECT idx_tup_fetch, seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'subscriptions'"
    )
    with psycopg.connect(role_conninfo(address, Role.ROUTER)) as connection:
        connection.execute(sql.SQL(query), params)  # type: ignore[arg-type]
        ((by_key, in_order),) = connection.execute(counted).fetchall()
        connection.rollback()
    assert in_order == 0
    return by_key


@pytest.mark.parametrize(
    ("dropped", "looks"),
    [
        ("idx_job_pending", ["claim_waiting_jobs", "claim_waiting_jobs"]),
        ("idx_job_status_lease", ["reset_expired_leases"]),
        ("idx_flow_wake", ["next_wake"]),
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
        assert {name for name in instead if not name.endswith("_pkey")} - OF_ONE_SUBSCRIPTION == set()


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


def _read(node: dict[str, Any], kind: str = "Scan") -> int:
    """Rows of tables, those included that a filter threw away."""
    own = node["Actual Rows"] if "Relation Name" in node and kind in node["Node Type"] else 0
    thrown = sum(count for name, count in node.items() if name.startswith("Rows Removed by"))
    return int((own + thrown) * node["Actual Loops"]) + sum(
        _read(child, kind) for child in node.get("Plans", ())
    )
