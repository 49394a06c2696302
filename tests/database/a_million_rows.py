"""A database that has run for a month: a million rows in each big table, and only a few that are due now."""

from collections.abc import Sequence
from typing import LiteralString

import psycopg

from tests.database.pattern_rows import PATTERN_HISTORY, PATTERNS

BIG_TABLES = (
    "events",
    "routing_outbox",
    "subscriptions",
    "subscription_flow",
    "webhook_delivery_sagas",
    "webhook_delivery_jobs",
    "dead_letters",
    "subscription_history",
    "subscription_patterns",
    "subscription_pattern_history",
    "routing_decisions",
    "bulk_operation_lanes",
    "subscription_health",
    "operational_outbox",
)

CROWD = 1
"""The subscription that a million jobs wait for."""

BUSY = 45_000
"""The subscription that was tried 20,000 times since this morning."""

DUE = 10
"""How many are due of everything that can be due: the rows that a good plan reads."""

DUE_SUBSCRIPTIONS = range(49_980, 50_000)
"""Each has one saga that is due, and twenty that are not."""

DISABLED = 25_000
"""The subscription that was switched off a day ago."""

WAITING_SAGAS = range(1, 1_000_001)
CROWD_SAGAS = range(1_000_001, 2_000_001)
PENDING_SAGAS = range(2_000_001, 2_000_011)
DUE_RETRIES = range(2_000_011, 2_000_021)
FINISHED_SAGAS = range(2_001_021, 2_001_031)
CROWD_JOBS = range(1, 1_000_001)
LEASED_JOBS = range(1_700_021, 1_701_021)
FINISHED_JOBS = range(1_701_021, 1_701_031)
BUSY_JOBS = range(1_701_031, 1_721_031)
"""Ids, as the statements below number them."""

ATTEMPT_AT: LiteralString = "2026-01-01T00:00:00Z"
"""When the attempts were due whose results nobody has applied."""

_STATEMENTS: tuple[LiteralString, ...] = (
    # 1,000 event types with 50 subscriptions each
    """INSERT INTO subscriptions (event_types, callback_url, active, verified, eligible_after_event)
       SELECT ARRAY['type.' || n % 1000], 'https://receiver.example/' || n, true, true, 0
         FROM generate_series(1, 50000) AS n""",
    "INSERT INTO subscription_secrets (subscription_id, secret) SELECT id, 'sealed' FROM subscriptions",
    """INSERT INTO subscription_flow (subscription_id, in_flight_limit, wake_at)
       SELECT id, 1000, now() + CASE WHEN id BETWEEN 49980 AND 49999 THEN interval '-1 second' ELSE interval '1 day' END
         FROM subscriptions""",
    # a month of events, every second one with a key, and each with an attribute of its own and one that all have
    """INSERT INTO events (event_type, source, external_id, created_at, payload, attributes)
       SELECT 'type.' || n % 1000, '', CASE WHEN n % 2 = 0 THEN 'key-' || n END,
              now() - (1000000 - n) * interval '2.6 seconds', '{"n": 1}',
              jsonb_build_object('order_id', 'ORD-' || n, 'region', 'eu')
         FROM generate_series(1, 1000000) AS n""",
    "INSERT INTO routing_outbox (event_id, created_at) SELECT id, created_at FROM events",
    # a million sagas wait until tomorrow, a million are in progress; ten first attempts and ten retries are due
    """INSERT INTO webhook_delivery_sagas
              (event_id, subscription_id, status, attempt_count, next_attempt_at, final_error_code)
       SELECT n, 1 + n % 50000, 'PendingRetry', 1, now() + interval '1 day', 'http_503'
         FROM generate_series(1, 1000000) AS n""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, bulk_operation_id)
       SELECT n, 1, 'InProgress', 1 FROM generate_series(1, 1000000) AS n WHERE n % 50000 > 0""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status)
       SELECT n, 30000, 'InProgress' FROM generate_series(1, 20) AS n""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, attempt_count, next_attempt_at)
       SELECT n, 50000 - n, CASE WHEN n > 10 THEN 'PendingRetry' ELSE 'Pending' END::saga_status,
              CASE WHEN n > 10 THEN 1 ELSE 0 END, now() - interval '1 second'
         FROM generate_series(1, 20) AS n""",
    # sagas of the jobs that are leased or finished, and a history of delivered ones
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status)
       SELECT n, 40000 + n, 'InProgress' FROM generate_series(1001, 2000) AS n""",
    f"""INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, next_attempt_at)
       SELECT n, 40000 + n, 'InProgress', '{ATTEMPT_AT}' FROM generate_series(2001, 2010) AS n""",
    """INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, attempt_count)
       SELECT n, 1 + (n + 1) % 50000, 'Completed', 1
         FROM generate_series(3001, 203000) AS n WHERE (n + 1) % 50000 > 0""",
    # a million first attempts and 300,000 retries wait for one endpoint, twenty jobs for ten others, of which
    # every second one was never sent to a queue and the others an hour ago
    """INSERT INTO webhook_delivery_jobs
              (saga_id, subscription_id, attempt_number, attempt_at, dispatched_at)
       SELECT 1000000 + n, 1, 1, now(), now() FROM generate_series(1, 1000000) AS n""",
    """INSERT INTO webhook_delivery_jobs
              (saga_id, subscription_id, attempt_number, attempt_at, dispatched_at)
       SELECT 3000000 + n, 1, 2, now(), now() FROM generate_series(1, 300000) AS n""",
    """INSERT INTO webhook_delivery_jobs
              (saga_id, subscription_id, attempt_number, attempt_at, created_at, dispatched_at)
       SELECT 500000 + n, 2 + n % 10, 1 + n / 10, now(), now() - interval '1 hour',
              CASE WHEN n % 2 = 0 THEN now() - interval '1 hour' END
         FROM generate_series(0, 19) AS n""",
    # a month of finished jobs, a thousand leases of which ten are over, ten results that nobody took yet
    """INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,
              claim_count, worker_id, response_status, created_at, finished_at)
       SELECT 5000000 + n, 1 + n % 50000, 1, now(), 'Completed', 1, 'w', 200, t, t
         FROM generate_series(1, 400000) AS n,
              LATERAL (SELECT now() - (400000 - n) * interval '6.5 seconds' AS t) AS time""",
    # the sagas of the oldest of them, which are old enough to be deleted
    """INSERT INTO webhook_delivery_sagas (id, event_id, subscription_id, status, attempt_count, created_at,
              updated_at) OVERRIDING SYSTEM VALUE
       SELECT saga_id, saga_id - 4989990, subscription_id, 'Completed', 1, finished_at, finished_at
         FROM webhook_delivery_jobs WHERE saga_id BETWEEN 5000001 AND 5010000""",
    """INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,
              claim_count, worker_id, lease_until)
       SELECT 2000020 + n, 41000 + n, 1, now(), 'Leased', 1, 'w',
              now() + CASE WHEN n > 10 THEN interval '1 hour' ELSE interval '-1 second' END
         FROM generate_series(1, 1000) AS n""",
    f"""INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status,
              claim_count, worker_id, error_code, finished_at)
       SELECT 2001020 + n, 42000 + n, 1, '{ATTEMPT_AT}', 'Failed', 1, 'w', 'http_503', now()
         FROM generate_series(1, 10) AS n""",
    # a busy endpoint: 20,000 attempts in five hours, until two hours ago, of which every 100th failed, and every
    # 2,000th without an answer
    """INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status, claim_count,
              worker_id, response_status, error_code, duration_ms, resolved_ip, created_at, finished_at)
       SELECT n, 45000, 1, now(), CASE WHEN n % 100 = 0 THEN 'Failed' ELSE 'Completed' END::job_status, 1, 'w',
              CASE WHEN n % 2000 = 0 THEN NULL WHEN n % 100 = 0 THEN 500 ELSE 200 END,
              CASE WHEN n % 2000 = 0 THEN 'tls_error' WHEN n % 100 = 0 THEN 'http_500' END,
              n % 1000, '192.0.2.1', t, t
         FROM generate_series(1, 20000) AS n,
              LATERAL (SELECT now() - interval '2 hours' - (20000 - n) * interval '0.9 seconds' AS t) AS time""",
    # a million dead letters, ten of them with a rare error
    """INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code,
              failed_at, payload_snapshot)
       SELECT 6000000 + n, n, 1 + n % 50000, 'default', 'type.' || n % 1000,
              CASE WHEN n % 100000 = 0 THEN 'tls_error' ELSE 'http_503' END,
              now() - (1000000 - n) * interval '2.6 seconds', '{"n": 1}'
         FROM generate_series(1, 1000000) AS n""",
    # each subscription changed twenty times in the month of events; of a million events it is known how they were
    # routed, of the few that a test routes it is not
    """INSERT INTO subscription_history
              (subscription_id, tenant_id, event_types, active, verified, eligible_after_event, changed_at, changed_by,
               changed_in)
       SELECT 1 + n % 50000, 'default', ARRAY['type.' || (1 + n % 50000) % 1000], n / 50000 % 2 = 0, true,
              CASE n / 50000 % 2 WHEN 0 THEN 0 END, now() - (1000000 - n) * interval '2.6 seconds', n::text::xid8,
              (1 + n || ':' || 1 + n || ':')::pg_snapshot
         FROM generate_series(0, 999999) AS n""",
    """INSERT INTO routing_decisions (event_id, routed_at, newest_change, snapshot, sagas_started)
       SELECT n, now() - (1000000 - n) * interval '2.6 seconds', n, (n || ':' || n || ':')::pg_snapshot, 1
         FROM generate_series(1001, 1001002) AS n WHERE n NOT IN (700000, 800000)""",
    # a requeue of them all with a lane for each subscription, of which the crowded one is first; and the backfill of
    # a subscription whose type has a thousand events
    """INSERT INTO bulk_operations (kind, tenant_id, filter, rate_per_second, created_by, until_id, matched)
       VALUES ('requeue', NULL, '{}', 20, 'ops', 1000000, 1000000),
              ('backfill', 'default', '{"event_types": ["type.77"], "since": "2020-01-01T00:00:00Z"}', 20, 'ops',
               1000000, 1000)""",
    """INSERT INTO bulk_operation_lanes (operation_id, subscription_id, matched)
       SELECT 1, n, 20 FROM generate_series(1, 50000) AS n UNION ALL SELECT 2, 77, 1000""",
    # every endpoint has failed for ten days, but only ten of them still get attempts; ten others are gone; the last
    # hundred attempts or so are not counted yet, and nobody was told of the newest dead letters
    """INSERT INTO subscription_health (subscription_id, watched_since, consecutive_failures, first_failure_at,
              last_failure_at)
       SELECT id, '2020-01-01', 20, now() - interval '10 days',
              now() - CASE WHEN id BETWEEN 31001 AND 31010 THEN interval '1 hour' ELSE interval '2 days' END
         FROM subscriptions""",
    "UPDATE subscriptions SET active = false, eligible_after_event = NULL WHERE id = 25000",
    # of its event types one has its events, and nineteen prefixes have none yet
    PATTERNS,
    PATTERN_HISTORY,
    """INSERT INTO subscription_patterns (tenant_id, pattern, subscription_id, eligible_after_event, ordered, filtered)
       SELECT tenant_id, pattern || '.' || n || '.*', subscription_id, 0, false, false
         FROM subscription_patterns, generate_series(1, 19) AS n""",
    """INSERT INTO subscription_pattern_history (tenant_id, pattern, subscription_id)
       SELECT tenant_id, pattern || '.' || n || '.*', subscription_id
         FROM subscription_pattern_history, generate_series(1, 19) AS n""",
    """UPDATE subscription_health SET disabled_at = now() - interval '1 day', disabled_reason = 'failing',
              disabled_failing_since = now() - interval '5 days'
        WHERE subscription_id = 25000""",
    # an event said of a thousand endpoints that they fail; ten of them work again
    """UPDATE subscription_health SET told_failing_since = first_failure_at,
              last_success_at = CASE WHEN subscription_id <= 31010 THEN now() END
        WHERE subscription_id BETWEEN 31001 AND 32000""",
    # ten subscriptions are paused, and ten endpoints have asked for time; a thousand circuit breakers are open and were
    # told, ten others have opened since, and of ten the end is not told
    "UPDATE subscriptions SET paused_at = now() WHERE id BETWEEN 35001 AND 35010",
    """UPDATE subscription_flow SET retry_after_until = now() + CASE WHEN subscription_id <= 36010 THEN 1 ELSE -1 END
              * interval '1 day'
        WHERE subscription_id BETWEEN 36001 AND 36110""",
    """UPDATE subscription_flow SET breaker_opened_at = now() - interval '2 hours', probe_at = now() + interval '1 day'
        WHERE subscription_id BETWEEN 33001 AND 34010""",
    """UPDATE subscription_health SET breaker_told_at = now() - interval '2 hours'
        WHERE subscription_id BETWEEN 33011 AND 34020""",
    "UPDATE subscription_health_mark SET counted_until = now() - interval '3 minutes'",
    """INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status, claim_count,
              worker_id, response_status, error_code, leased_at, finished_at)
       SELECT 7000000 + n, 32000 + n % 10, 1, t, 'Failed', 1, 'w', 410, 'http_410', t, t
         FROM generate_series(1, 100000) AS n,
              LATERAL (SELECT now() - CASE WHEN n <= 10 THEN interval '30 minutes' ELSE interval '3 days' END AS t)""",
    """INSERT INTO webhook_delivery_sagas (id, event_id, subscription_id, status, attempt_count)
       OVERRIDING SYSTEM VALUE
       SELECT 6000000 + n, n, 1 + (n + 2) % 50000, 'DeadLettered', 5 FROM generate_series(900001, 900010) AS n""",
    "INSERT INTO operational_outbox (dead_letter_id) SELECT generate_series(900001, 1000000)",
)


_SECONDARY_INDEXES: LiteralString = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
      FROM pg_index i
     WHERE indrelid = ANY (%s::regclass[])
       AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)"""


def fill(connection: psycopg.Connection, statements: Sequence[LiteralString] = _STATEMENTS) -> None:
    """Put everything in, or what other statements insert; takes a superuser. No trigger runs, and no row is checked
    against another table.

    Indexes are built at the end, which takes half as long. VACUUM leaves out rows whose commit, or a neighbour's, is
    not on disk yet, so commits are waited for.
    """
    connection.execute("SET synchronous_commit = on")
    indexes = connection.execute(_SECONDARY_INDEXES, [list(BIG_TABLES)]).fetchall()
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}".encode())
        for statement in statements:
            connection.execute(statement)
        for _, definition in indexes:
            connection.execute(definition.encode())
    connection.execute("VACUUM (ANALYZE)")
