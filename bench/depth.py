"""Throughput, and the times of claim and due queries, on an empty database and on one with years of work in it.

    .venv/bin/python -m bench.depth [--finished 5000000] [--waiting 1000000] [--events 20000] [--rounds 3] [--json]

Two databases, one with the finished jobs and waiting sagas of bench/history.py; `hooksaga up` runs on them in turn.
Throughput goes from the first event posted, in batches through the API, until the last saga is Completed. Query times
are those that EXPLAIN ANALYZE tells, planning included, as the role that runs the query, with 100 rows to find beside
all the others; each is the median of nine runs that are rolled back. Five million need some 6 GB of disk.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from bench import history
from bench.figures import ms, rates_shown, shown, times
from bench.load import run_load
from bench.place import Place, parser_of, report, run_command, running_on, running_server, temporary_folder
from bench.receiver import RunningReceiver, running_receiver
from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.adapters.queries import load_queries

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
    run_command(lambda: _measure(options), table, json=options.json)


def _measure(options: argparse.Namespace) -> Depth:
    with temporary_folder() as empty, temporary_folder() as full, running_receiver(empty) as receiver:
        for folder in (empty, full):
            with running_on(folder, receiver) as place:
                subscribe(place)
        report(f"making {options.finished:,} finished jobs and {options.waiting:,} waiting sagas")
        fill_history(full, finished=options.finished, waiting=options.waiting)
        rates = rates_in_turn({"empty": empty, "full": full}, receiver, options)
        empty_ms, full_ms = (_query_times_of(folder) for folder in (empty, full))
        return Depth(
            options.finished,
            options.waiting,
            _size_mb(full),
            rates["empty"],
            rates["full"],
            times(statistics.median(rates["full"]), statistics.median(rates["empty"])),
            [QueryTime(name, empty_ms[name], full_ms[name]) for name in empty_ms],
        )


def subscribe(place: Place) -> list[int]:
    """What is delivered to, and those that the history is of; the ids of these."""
    place.subscribe([(EVENT_TYPE, "/ok/depth")])
    return place.subscribe(
        [(history.EVENT_TYPE, f"/ok/history/{number}") for number in range(history.SUBSCRIPTIONS)]
    )


def fill_history(folder: Path, *, finished: int, waiting: int) -> None:
    with running_server(folder) as url:
        history.fill(url, history_subscriptions(url), finished=finished, waiting=waiting)


def history_subscriptions(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        wanted = "SELECT id FROM subscriptions WHERE %s = ANY (event_types) ORDER BY id"
        return [row[0] for row in connection.execute(wanted, [history.EVENT_TYPE])]


def rates_in_turn(
    folders: Mapping[str, Path], receiver: RunningReceiver, options: Any, *, settle_seconds: float = 0
) -> dict[str, list[float]]:
    """Deliveries a second of each run, by the name of the folder. options: with events and rounds."""
    rates: dict[str, list[float]] = {name: [] for name in folders}
    for number in range(options.rounds):
        for name, folder in folders.items():
            with running_on(folder, receiver) as place:
                time.sleep(settle_seconds)
                rates[name].append(throughput(place, options.events))
                report(f"round {number + 1}, {name}: {rates[name][-1]:,.0f}/s")
    return rates


def throughput(place: Place, events: int) -> float:
    """Deliveries a second."""
    warm_up = run_load(place.load(EVENT_TYPE, count=min(events, BATCH)))
    place.receiver.wait_for(len(warm_up.accepted_at))
    place.receiver.take()
    loaded = run_load(place.load(EVENT_TYPE, count=events, batch=BATCH, connections=8))
    place.receiver.wait_for(events)
    place.wait_until_delivered()
    seconds = time.monotonic() - loaded.started_at
    place.receiver.take()
    return round(events / seconds, 1)


def _query_times_of(folder: Path) -> dict[str, float]:
    with running_server(folder) as url:
        return query_times(url, history_subscriptions(url))


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
    SELECT id, %(subscription)s, %(attempt)s, now() - interval '1 second', 5, %(status)s::job_status, %(claims)s,
           %(worker)s, %(answer)s, %(finished)s::timestamptz, %(lease)s::timestamptz
      FROM unnest(%(sagas)s::bigint[]) AS id
    RETURNING id"""


def query_times(url: str, subscription_ids: Sequence[int]) -> dict[str, float]:
    """Median milliseconds of each claim and due query. Leaves 100 rows of each kind behind."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        waiting = _make_due(connection, subscription_ids)
        connection.execute(
            "UPDATE subscription_flow SET version = 0"
        )  # start_due wants the version that was read
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
        "versions": [0, 0],
        "in_flight": [1000, 1000],
        "starts": [DUE, DUE],
        "probes": [False, False],
        "tokens": [None, None],
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
            "flow_to_start",
            {"subscription_ids": subscriptions, "most_woken": 500},
        ),
        (Role.ORCHESTRATOR, "orchestrate", "start_due", start),
        (Role.ORCHESTRATOR, "orchestrate", "waiting_subscriptions", {"after": 0, **limit}),
        (Role.ORCHESTRATOR, "orchestrate", "next_wake", {}),
        (
            Role.ORCHESTRATOR,
            "orchestrate",
            "unapplied_results",
            {"after_subscription": 0, "after_saga": 0, **limit},
        ),
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


def table(result: Depth) -> str:
    queries = [(one.query, ms(one.empty_ms), ms(one.full_ms)) for one in result.queries]
    depth = f"{result.finished:,} finished jobs, {result.waiting:,} waiting sagas, {result.database_mb:,} MB"
    return "\n".join(
        (
            depth,
            rates_shown({"empty": result.empty_rates, "full": result.full_rates}),
            f"full: {result.share} times empty",
            "",
            shown((f"query, {DUE} rows due", "empty ms", "full ms"), queries),
        )
    )


if __name__ == "__main__":
    main()
