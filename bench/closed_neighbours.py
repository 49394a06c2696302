"""10,000 subscriptions that are paused or have an open circuit breaker, each with a backlog: what another one notices.

    .venv/bin/python -m bench.closed_neighbours [--subscriptions 10000] [--backlog 10] [--events 20000] [--rounds 3]

Two databases, one with the closed subscriptions; `hooksaga up` runs on them in turn. Half of them are paused, or the
share --paused. The endpoints of the others answer 503, and their probes are spread over ten minutes, as after hours of
an outage. Throughput is that of bench/depth.py, to one open subscription. It begins a few seconds after the start, when
the process has looked at all of them once.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg

from bench import depth
from bench.figures import rates_shown, times
from bench.place import Place, parser_of, report, run_command, running_on, running_server, temporary_folder
from bench.receiver import running_receiver
from hooksaga.core.flow import LAST_PROBE_SECONDS
from hooksaga.core.saga import RetryPolicy

EVENT_TYPE = "bench.closed"
SETTLE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Closed:
    """Deliveries a second of each run. share: the median beside the closed ones, of that without them. probes: attempts
    to closed subscriptions in all runs."""

    subscriptions: int
    backlog: int
    without: list[float]
    beside: list[float]
    share: float
    probes: int
    still_waiting: int


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--subscriptions", type=int, default=10_000, help="that are closed")
    parser.add_argument("--backlog", type=int, default=10, help="deliveries that wait for each of them")
    parser.add_argument("--events", type=int, default=20_000, help="delivered in each run")
    parser.add_argument("--rounds", type=int, default=3, help="runs on each database")
    parser.add_argument("--paused", type=float, default=0.5, help="share of them that is paused")
    options = parser.parse_args()
    run_command(lambda: _compare(options), table, json=options.json)


def _compare(options: argparse.Namespace) -> Closed:
    with temporary_folder() as without, temporary_folder() as beside, running_receiver(without) as receiver:
        for folder in (without, beside):
            with running_on(folder, receiver) as place:
                depth.subscribe(place)
                if folder is beside:
                    subscribe(place, options.subscriptions)
        with running_server(beside) as url:
            close(url, options.backlog, options.paused)
        folders = {"without": without, "beside": beside}
        rates = depth.rates_in_turn(folders, receiver, options, settle_seconds=SETTLE_SECONDS)
        return Closed(
            options.subscriptions,
            options.backlog,
            rates["without"],
            rates["beside"],
            times(statistics.median(rates["beside"]), statistics.median(rates["without"])),
            *_left(beside),
        )


def subscribe(place: Place, subscriptions: int) -> None:
    report(f"making {subscriptions:,} subscriptions")
    place.subscribe([(EVENT_TYPE, f"/status/503/{number}") for number in range(subscriptions)])


def close(url: str, backlog: int, paused: float = 0.5) -> None:
    """Give each subscription its backlog, and pause it or open its circuit breaker. Takes a superuser."""
    policy = RetryPolicy()
    values = {
        "event_type": EVENT_TYPE,
        "backlog": backlog,
        "paused": round(100 * paused),
        "failures": policy.breaker_failures,
        "probe_seconds": LAST_PROBE_SECONDS,
    }
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            connection.execute("SET LOCAL statement_timeout = 0")
            for statement in (EVENTS, ROUTED, SAGAS, PAUSED, BROKEN):
                connection.execute(statement, values)
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CHECKPOINT")


def _left(folder: Path) -> tuple[int, int]:
    with running_server(folder) as url, psycopg.connect(url) as connection:
        probes, waiting = connection.execute(LEFT, {"event_type": EVENT_TYPE}).fetchone() or (0, 0)
        return probes, waiting


EVENTS: LiteralString = """
    INSERT INTO events (event_type, created_at, payload)
    SELECT %(event_type)s, now() - interval '1 hour' + n * interval '1 minute', '{"number":1}'::json
      FROM generate_series(1, %(backlog)s) AS n"""

ROUTED: LiteralString = """
    INSERT INTO routing_decisions (event_id, routed_at, newest_change, snapshot, sagas_started)
    SELECT id, created_at, 0, pg_current_snapshot(),
           (SELECT count(*) FROM subscriptions WHERE %(event_type)s = ANY (event_types))
      FROM events WHERE event_type = %(event_type)s"""

SAGAS: LiteralString = """
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, next_attempt_at, created_at, updated_at)
    SELECT e.id, s.id, e.created_at, e.created_at, e.created_at
      FROM events e JOIN subscriptions s ON e.event_type = ANY (s.event_types)
     WHERE e.event_type = %(event_type)s"""

PAUSED: LiteralString = """
    UPDATE subscriptions SET paused_at = now()
     WHERE %(event_type)s = ANY (event_types) AND id * 37 %% 100 < %(paused)s"""

BROKEN: LiteralString = """
    UPDATE subscription_flow f
       SET in_flight_limit = 1, failures_in_a_row = %(failures)s, breaker_opened_at = now(), probes = 20,
           probe_at = s.due_at, wake_at = s.due_at
      FROM (SELECT id, date_trunc('second', now() + random() * make_interval(secs => %(probe_seconds)s)) AS due_at
              FROM subscriptions WHERE %(event_type)s = ANY (event_types) AND id * 37 %% 100 >= %(paused)s) AS s
     WHERE s.id = f.subscription_id"""

LEFT: LiteralString = """
    SELECT (SELECT count(*) FROM webhook_delivery_jobs j JOIN subscriptions s ON s.id = j.subscription_id
             WHERE %(event_type)s = ANY (s.event_types)),
           (SELECT count(*) FROM webhook_delivery_sagas g JOIN subscriptions s ON s.id = g.subscription_id
             WHERE %(event_type)s = ANY (s.event_types) AND g.status IN ('Pending', 'PendingRetry'))"""


def table(result: Closed) -> str:
    closed = f"{result.subscriptions:,} closed subscriptions, {result.backlog} deliveries waiting for each"
    return "\n".join(
        (
            closed,
            rates_shown({"without them": result.without, "beside them": result.beside}),
            f"beside them: {result.share} times; {result.probes:,} probes of theirs",
        )
    )


if __name__ == "__main__":
    main()
