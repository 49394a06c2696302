"""Throughput, and the times of claim and due queries, on an empty database and on one with years of work in it.

    .venv/bin/python -m bench.depth [--finished 5000000] [--waiting 1000000] [--events 20000] [--rounds 3] [--json]

Two databases, one with the finished jobs and waiting sagas of bench/history.py; `hooksaga up` runs on them in turn.
Throughput goes from the first event posted, in batches through the API, until the last saga is Completed. Query times
are those that EXPLAIN ANALYZE tells, planning included, as the role that runs the query, with 100 rows to find beside
all the others; each is the median of nine runs that are rolled back. Five million need some 6 GB of disk.
"""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from bench import history
from bench.figures import ms, shown, times
from bench.load import run_load
from bench.place import Place, parser_of, report, run_command, running_on, temporary_folder
from bench.receiver import RunningReceiver, running_receiver
from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.queries import load_queries
from hooksaga.local.postgres import EmbeddedPostgres

EVENT_TYPE = "bench.depth"
BATCH = 100
DUE = 100
QUERY_RUNS = 9
MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class QueryTime:
    """Milliseconds of one query, in the empty database and in the full one."""

    query: str
    empty_ms: float
    full_ms: float


@dataclass(frozen=True, slots=True)
class Depth:
    """rates: deliveries a second of each run. share: the median in the full database, of that in the empty one."""

    finished: int
    waiting: int
    database_mb: int
    empty_rates: list[float]
    full_rates: list[float]
    share: float
    queries: list[QueryTime]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--finished", type=int, default=5_000_000, help="jobs that have ended")
    parser.add_argument("--waiting", type=int, default=1_000_000, help="sagas that wait for a retry")
    parser.add_argument("--events", type=int, default=20_000, help="delivered in each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs on each")
    options = parser.parse_args()

    def run() -> Any:
        with (
            temporary_folder() as empty,
            temporary_folder() as full,
            running_receiver(empty) as receiver,
        ):
            _prepare(empty, receiver)
            _prepare(full, receiver)
            _fill(full, options.finished, options.waiting)
            return asdict(_measure(empty, full, receiver, options))

    run_command(run, table, json=options.json)


def _prepare(folder: Path, receiver: RunningReceiver) -> None:
    with running_on(folder, receiver) as place:
        subscribe(place)


def subscribe(place: Place) -> list[int]:
    """What is delivered to, and those that the history is of; the ids of these."""
    place.subscribe([(EVENT_TYPE, "/ok/depth")])
    return place.subscribe(
        [(history.EVENT_TYPE, f"/ok/history/{number}") for number in range(history.SUBSCRIPTIONS)]
    )


def _fill(folder: Path, finished: int, waiting: int) -> None:
    report(f"making {finished:,} finished jobs and {waiting:,} waiting sagas")
    url = EmbeddedPostgres(folder).start()
    history.fill(url, history_subscriptions(url), finished=finished, waiting=waiting)
    EmbeddedPostgres(folder).stop()


def history_subscriptions(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        wanted = "SELECT id FROM subscriptions WHERE %s = ANY (event_types) ORDER BY id"
        return [row[0] for row in connection.execute(wanted, [history.EVENT_TYPE])]


def _measure(empty: Path, full: Path, receiver: RunningReceiver, options: Any) -> Depth:
    rates: dict[Path, list[float]] = {empty: [], full: []}
    for number in range(options.rounds):
        for folder, done in rates.items():
            with running_on(folder, receiver) as place:
                done.append(throughput(place, options.events))
                report(f"round {number + 1}, {'empty' if folder is empty else 'full'}: {done[-1]:,.0f}/s")
    queries = {folder: _query_times_of(folder) for folder in rates}
    return Depth(
        options.finished,
        options.waiting,
        _size_mb(full),
        rates[empty],
        rates[full],
        times(statistics.median(rates[full]), statistics.median(rates[empty])),
        [QueryTime(name, queries[empty][name], queries[full][name]) for name in queries[empty]],
    )


def throughput(place: Place, events: int) -> float:
    """Deliveries a second."""
    warm_up = run_load(place.load(EVENT_TYPE, count=min(events, BATCH)))
    place.receiver.wait_for(len(warm_up.accepted_at))
    place.receiver.take()
    loaded = run_load(place.load(EVENT_TYPE, count=events, batch=BATCH, connections=8))
    place.receiver.wait_for(events)
    place.wait_until_none(OPEN)
    seconds = time.monotonic() - loaded.started_at
    place.receiver.take()
    return round(events / seconds, 1)


OPEN: LiteralString = """
    SELECT count(*) FROM (SELECT FROM webhook_delivery_sagas WHERE status = 'InProgress' LIMIT 1) AS open"""


def _query_times_of(folder: Path) -> dict[str, float]:
    server = EmbeddedPostgres(folder)
    url = server.start()
    try:
        return query_times(url, history_subscriptions(url))
    finally:
        server.stop()


def _size_mb(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "postgres" / "base").rglob("*")) // MEGABYTE


DUE_SAGAS: LiteralString = """
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, attempt_count, next_attempt_at)
    SELECT e.id, %(subscription)s, %(status)s::saga_status, %(attempts)s, now() - interval '1 second'
      FROM (SELECT id FROM events WHERE event_type = %(event_type)s ORDER BY id DESC OFFSET %(skip)s LIMIT %(due)s) AS e
    RETURNING id"""

DUE_JOBS: LiteralString = """
    INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, max_attempts, status,
              claim_count, worker_id, response_status, finished_at, lease_until)
    SELECT id, %(subscription)s, %(attempt)s, now(), 5, %(status)s::job_status, %(claims)s, %(worker)s, %(answer)s,
           %(finished)s::timestamptz, %(lease)s::timestamptz
      FROM unnest(%(sagas)s::bigint[]) AS id
    RETURNING id"""


def query_times(url: str, subscription_ids: Sequence[int]) -> dict[str, float]:
    """Median milliseconds of each claim and due query. Leaves 100 rows of each kind behind."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        waiting = _make_due(connection, subscription_ids)
    return {
        f"{role.value}: {query}": _median_ms(url, role, stage, query, params)
        for role, stage, query, params in _asked(waiting, list(subscription_ids[-2:]))
    }


def _make_due(connection: psycopg.Connection, subscription_ids: Sequence[int]) -> list[int]:
    """100 sagas that are due of both kinds, and 100 jobs of each kind that is looked for; ids of those to claim."""
    status_and_attempts = [("Pending", 0), ("PendingRetry", 1), *[("InProgress", 0)] * 4]
    sagas: list[list[int]] = []
    for place, (status, attempts) in enumerate(status_and_attempts):
        values = {
            "subscription": subscription_ids[-1 - place],
            "status": status,
            "attempts": attempts,
            "event_type": EVENT_TYPE,
            "skip": place * DUE,
            "due": DUE,
        }
        sagas.append([row[0] for row in connection.execute(DUE_SAGAS, values)])
    usual = {"attempt": 1, "status": "Pending", "claims": 0, "worker": None, "answer": None}
    usual |= {"finished": None, "lease": None}
    claimed = {"claims": 1, "worker": "w"}
    kinds: tuple[dict[str, Any], ...] = (
        usual,
        usual | {"attempt": 2},
        usual | claimed | {"status": "Completed", "answer": 200, "finished": "now"},
        usual | claimed | {"status": "Leased", "lease": "2000-01-01"},
    )
    jobs = [
        [
            row[0]
            for row in connection.execute(
                DUE_JOBS, kind | {"sagas": sagas[2 + place], "subscription": subscription_ids[-3 - place]}
            )
        ]
        for place, kind in enumerate(kinds)
    ]
    return jobs[0]


def _asked(job_ids: list[int], subscriptions: list[int]) -> list[tuple[Role, str, str, dict[str, Any]]]:
    claim = {"worker_id": "w", "lease_seconds": 60, "alone_from": 2, "one_alone": True}
    limit = {"limit": 500}
    clean = {"max_lost_leases": 5, "in_hand": [], "job_ids": None, **limit}
    start = {
        "subscription_ids": subscriptions,
        "in_flight": [1000, 1000],
        "starts": [DUE, DUE],
        "probes": [False, False],
        "slow": [False, False],
        "max_attempts": [5, 5],
        "has_ordered": [False, False],
        "cursors": ["", ""],
        "most_keys": 1000,
        "only": None,
    }
    return [
        (
            Role.ORCHESTRATOR,
            "orchestrate",
            "lock_flow",
            {"subscription_ids": subscriptions, "most_woken": 500},
        ),
        (Role.ORCHESTRATOR, "orchestrate", "start_due", start),
        (Role.ORCHESTRATOR, "orchestrate", "flow_of_results", {"subscription_ids": subscriptions}),
        (Role.ORCHESTRATOR, "orchestrate", "waiting_subscriptions", {"after": 0, **limit}),
        (Role.ORCHESTRATOR, "orchestrate", "next_wake", {}),
        (Role.ORCHESTRATOR, "orchestrate", "find_finished_jobs", {"job_ids": None, **limit}),
        (Role.DELIVERY, "deliver", "claim_waiting_jobs", {"slow": False, "limit": DUE, **claim}),
        (Role.DELIVERY, "deliver", "claim_jobs", {"job_ids": job_ids, **claim}),
        (Role.LEASE_CLEANER, "clean_leases", "reset_expired_leases", clean),
    ]


EXPLAIN = sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ")


def _median_ms(url: str, role: Role, stage: str, query: str, params: dict[str, Any]) -> float:
    statement = EXPLAIN + sql.SQL(load_queries(stage)[query])
    took: list[float] = []
    with psycopg.connect(role_conninfo(DatabaseAddress(url), role), autocommit=True) as connection:
        for _ in range(QUERY_RUNS):
            with connection.transaction(force_rollback=True):
                answer = connection.execute(statement, params).fetchone()
            assert answer is not None
            told = answer[0] if isinstance(answer[0], list) else json.loads(answer[0])
            took.append(told[0]["Planning Time"] + told[0]["Execution Time"])
    return round(statistics.median(took), 3)


def table(result: dict[str, Any]) -> str:
    rates = [
        (name, *(f"{rate:,.0f}" for rate in result[key]), f"{statistics.median(result[key]):,.0f}")
        for name, key in (("empty", "empty_rates"), ("full", "full_rates"))
    ]
    runs = len(result["empty_rates"])
    queries = [(one["query"], ms(one["empty_ms"]), ms(one["full_ms"])) for one in result["queries"]]
    depth = f"{result['finished']:,} finished jobs, {result['waiting']:,} waiting sagas, {result['database_mb']:,} MB"
    return "\n".join(
        (
            depth,
            shown(("deliveries/s", *(f"run {run + 1}" for run in range(runs)), "median"), rates),
            f"full: {result['share']} times empty",
            "",
            shown((f"query, {DUE} rows due", "empty ms", "full ms"), queries),
        )
    )


if __name__ == "__main__":
    main()
