-- Views for dashboards. They run with their owner's rights, so readers need no rights on the tables; security
-- barriers keep rows outside a view from a reader's functions.
CREATE VIEW outbox_age WITH (security_barrier) AS
SELECT 'evt_' || replace(e.webhook_id::text, '-', '') AS event_id, oldest.created_at AS accepted_at,
       coalesce(greatest(extract(epoch FROM now() - oldest.created_at), 0), 0)::float8 AS age_seconds
  FROM (VALUES (true)) AS always (one)
  LEFT JOIN LATERAL (SELECT event_id, created_at FROM routing_outbox ORDER BY event_id LIMIT 1) AS oldest ON true
  LEFT JOIN events e ON e.id = oldest.event_id;

COMMENT ON VIEW outbox_age IS
    'How long the oldest event in the outbox has waited for the router. Always one row.';
COMMENT ON COLUMN outbox_age.event_id IS 'The event, or null when all are routed.';
COMMENT ON COLUMN outbox_age.accepted_at IS 'When it was accepted, or null when all are routed.';
COMMENT ON COLUMN outbox_age.age_seconds IS 'Seconds since then; 0 when all are routed.';

-- The oldest due saga of each subscription whose room is open (core/flow.py): elsewhere deliveries wait because they
-- should. Goes from one waiting subscription to the next on the index, so a million waiting sagas of one subscription
-- cost as much as one. Read by the views and queries that look for work that nobody does.
CREATE VIEW oldest_due_by_subscription WITH (security_barrier) AS
WITH RECURSIVE waiting (subscription_id) AS (
    (SELECT subscription_id FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')
      ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.subscription_id FROM webhook_delivery_sagas s
             WHERE s.status IN ('Pending', 'PendingRetry') AND s.subscription_id > w.subscription_id
             ORDER BY s.subscription_id LIMIT 1)
      FROM waiting w WHERE w.subscription_id IS NOT NULL
), due AS MATERIALIZED (
    SELECT oldest.*
      FROM waiting w CROSS JOIN LATERAL (
          SELECT g.id, g.event_id, g.subscription_id, g.status, g.attempt_count, g.next_attempt_at
            FROM webhook_delivery_sagas g
           WHERE g.subscription_id = w.subscription_id AND num_nonnulls(g.ordering_key) = 0
             AND g.status IN ('Pending', 'PendingRetry') AND g.next_attempt_at <= now()
           ORDER BY g.next_attempt_at, g.id LIMIT 1) AS oldest
)
SELECT due.*
  FROM due
  JOIN subscriptions s ON s.id = due.subscription_id
  JOIN subscription_flow f ON f.subscription_id = due.subscription_id
 WHERE s.paused_at IS NULL AND f.breaker_opened_at IS NULL AND coalesce(f.retry_after_until <= now(), true)
   AND coalesce(f.tokens + extract(epoch FROM now() - f.tokens_at) * s.rate_limit_count / s.rate_limit_seconds >= 1,
                true)
   AND floor(least(f.in_flight_limit, s.max_in_flight)) > (
       SELECT count(*) FROM (SELECT FROM webhook_delivery_sagas g
                              WHERE g.status = 'InProgress' AND g.subscription_id = due.subscription_id
                              LIMIT 1000) AS in_flight);

COMMENT ON VIEW oldest_due_by_subscription IS
    'The oldest due saga of each subscription that has room for it. No row where nothing is due or room is closed.';
COMMENT ON COLUMN oldest_due_by_subscription.id IS 'The saga.';
COMMENT ON COLUMN oldest_due_by_subscription.event_id IS 'Its event.';
COMMENT ON COLUMN oldest_due_by_subscription.subscription_id IS 'Its subscription.';
COMMENT ON COLUMN oldest_due_by_subscription.status IS 'Pending before its first attempt, PendingRetry before a later one.';
COMMENT ON COLUMN oldest_due_by_subscription.attempt_count IS 'Number of failed attempts.';
COMMENT ON COLUMN oldest_due_by_subscription.next_attempt_at IS 'Time when its next attempt was due.';

CREATE VIEW oldest_due_saga WITH (security_barrier) AS
SELECT due.id AS saga_id, 'evt_' || replace(e.webhook_id::text, '-', '') AS event_id, due.subscription_id,
       due.status::text AS status, due.attempt_count, due.next_attempt_at AS due_at,
       coalesce(extract(epoch FROM now() - due.next_attempt_at), 0)::float8 AS age_seconds
  FROM (VALUES (true)) AS always (one)
  LEFT JOIN (SELECT * FROM oldest_due_by_subscription ORDER BY next_attempt_at LIMIT 1) AS due ON true
  LEFT JOIN events e ON e.id = due.event_id;

COMMENT ON VIEW oldest_due_saga IS
    'The saga whose next attempt has been due longest. Always one row. An age of seconds is normal only under load.';
COMMENT ON COLUMN oldest_due_saga.saga_id IS 'The saga, or null when none is due.';
COMMENT ON COLUMN oldest_due_saga.event_id IS 'Its event.';
COMMENT ON COLUMN oldest_due_saga.subscription_id IS 'Its subscription.';
COMMENT ON COLUMN oldest_due_saga.status IS 'Pending before its first attempt, PendingRetry before a later one.';
COMMENT ON COLUMN oldest_due_saga.attempt_count IS 'Number of failed attempts.';
COMMENT ON COLUMN oldest_due_saga.due_at IS 'Time when its next attempt was due.';
COMMENT ON COLUMN oldest_due_saga.age_seconds IS 'Seconds since then; 0 when none is due.';

-- Counts the subscriptions whose deliveries wait because they should, by the first reason that applies (core/flow.py).
-- Finds them on the indexes of paused subscriptions, open breakers and Retry-After times; the others cost nothing. A
-- subquery with LIMIT looks whether something waits: EXISTS would allow a plan that reads all waiting sagas.
CREATE VIEW subscriptions_by_flow_state WITH (security_barrier) AS
WITH closed AS MATERIALIZED (
    SELECT id FROM subscriptions WHERE paused_at IS NOT NULL AND deleted_at IS NULL
    UNION
    SELECT subscription_id FROM subscription_flow WHERE breaker_opened_at IS NOT NULL
    UNION
    SELECT subscription_id FROM subscription_flow WHERE retry_after_until > now()
), waiting AS MATERIALIZED (
    SELECT f.breaker_opened_at,
           CASE WHEN s.paused_at IS NOT NULL THEN 'paused'
                WHEN f.retry_after_until > now() THEN 'retry_after'
                ELSE 'breaker_open' END AS state
      FROM closed
      JOIN subscriptions s ON s.id = closed.id
      JOIN subscription_flow f ON f.subscription_id = closed.id
     WHERE s.active AND s.verified AND s.deleted_at IS NULL
       AND (SELECT g.id FROM webhook_delivery_sagas g
             WHERE g.subscription_id = s.id AND g.status IN ('Pending', 'PendingRetry') LIMIT 1) IS NOT NULL
)
SELECT count(*) FILTER (WHERE state = 'paused') AS paused, count(*) FILTER (WHERE state = 'retry_after') AS retry_after,
       count(*) FILTER (WHERE state = 'breaker_open') AS breaker_open,
       count(*) FILTER (WHERE state <> 'paused' AND breaker_opened_at <= now() - interval '1 hour')
           AS breaker_open_for_an_hour
  FROM waiting;

COMMENT ON VIEW subscriptions_by_flow_state IS
    'How many active subscriptions have waiting deliveries that may not start, by the reason. Always one row.';
COMMENT ON COLUMN subscriptions_by_flow_state.paused IS 'Paused subscriptions.';
COMMENT ON COLUMN subscriptions_by_flow_state.retry_after IS 'Those whose endpoint asked for time with Retry-After.';
COMMENT ON COLUMN subscriptions_by_flow_state.breaker_open IS 'Those whose circuit breaker is open.';
COMMENT ON COLUMN subscriptions_by_flow_state.breaker_open_for_an_hour IS
    'Those that are not paused and whose circuit breaker has been open for an hour or longer.';

-- Repeats the condition of idx_saga_retry_subscription, which alone serves it.
CREATE VIEW retry_debt_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS waiting_sagas, count(*) FILTER (WHERE next_attempt_at <= now()) AS due_sagas,
       min(next_attempt_at) AS next_attempt_at
  FROM webhook_delivery_sagas
 WHERE status IN ('Pending', 'PendingRetry') AND status = 'PendingRetry'
 GROUP BY subscription_id;

COMMENT ON VIEW retry_debt_by_subscription IS
    'Deliveries that wait for a retry. One row per subscription that has any.';
COMMENT ON COLUMN retry_debt_by_subscription.subscription_id IS 'The subscription.';
COMMENT ON COLUMN retry_debt_by_subscription.waiting_sagas IS 'Number of sagas in PendingRetry.';
COMMENT ON COLUMN retry_debt_by_subscription.due_sagas IS 'Number of these that are due.';
COMMENT ON COLUMN retry_debt_by_subscription.next_attempt_at IS 'Earliest due time among them.';

CREATE VIEW in_flight_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS leased_jobs, count(*) FILTER (WHERE lease_until < now()) AS expired_leases,
       min(leased_at) AS oldest_leased_at
  FROM webhook_delivery_jobs
 WHERE status = 'Leased'
 GROUP BY subscription_id;

COMMENT ON VIEW in_flight_by_subscription IS
    'Attempts that a worker holds now. One row per subscription that has any.';
COMMENT ON COLUMN in_flight_by_subscription.subscription_id IS 'The subscription.';
COMMENT ON COLUMN in_flight_by_subscription.leased_jobs IS 'Number of Leased jobs.';
COMMENT ON COLUMN in_flight_by_subscription.expired_leases IS 'Number of expired leases that are not reset yet.';
COMMENT ON COLUMN in_flight_by_subscription.oldest_leased_at IS 'Time of the oldest claim.';

CREATE VIEW deliveries_per_minute WITH (security_barrier) AS
SELECT date_trunc('minute', finished_at) AS minute,
       count(*) FILTER (WHERE status = 'Completed') AS succeeded, count(*) FILTER (WHERE status = 'Failed') AS failed,
       round(avg(duration_ms), 1)::float8 AS mean_duration_ms, max(duration_ms) AS max_duration_ms
  FROM webhook_delivery_jobs
 WHERE finished_at > now() - interval '1 hour'
 GROUP BY date_trunc('minute', finished_at);

COMMENT ON VIEW deliveries_per_minute IS
    'Attempts that ended within the last hour, by minute. Reads a row per attempt, so query it at most once a minute.';
COMMENT ON COLUMN deliveries_per_minute.minute IS 'The minute of their end; the first and the last are incomplete.';
COMMENT ON COLUMN deliveries_per_minute.succeeded IS 'Attempts answered with 2xx.';
COMMENT ON COLUMN deliveries_per_minute.failed IS 'Failed attempts. A lost lease alone does not fail an attempt.';
COMMENT ON COLUMN deliveries_per_minute.mean_duration_ms IS 'Mean duration of their POSTs in milliseconds.';
COMMENT ON COLUMN deliveries_per_minute.max_duration_ms IS 'Longest duration of their POSTs in milliseconds.';

-- A kind with no batch yet is measured from its oldest row.
CREATE VIEW retention_lag WITH (security_barrier) AS
SELECT p.kind, extract(epoch FROM p.keep)::float8 AS keep_seconds, p.looked_at,
       greatest(extract(epoch FROM now() - p.keep - coalesce(p.looked_at, oldest.at, now() - p.keep)), 0)::float8
           AS behind_seconds
  FROM retention_progress p
 CROSS JOIN LATERAL (
      SELECT CASE WHEN p.looked_at IS NOT NULL THEN NULL
                  WHEN p.kind = 'deliveries'
                  THEN (SELECT min(finished_at) FROM webhook_delivery_jobs WHERE finished_at IS NOT NULL)
                  WHEN p.kind = 'dead_letters' THEN (SELECT min(failed_at) FROM dead_letters)
                  ELSE (SELECT min(created_at) FROM events) END AS at) AS oldest
 WHERE p.keep IS NOT NULL;

COMMENT ON VIEW retention_lag IS
    'How far retention is behind. One row per kind of row with an age: deliveries, dead_letters, payloads, events.';
COMMENT ON COLUMN retention_lag.kind IS 'The kind of row.';
COMMENT ON COLUMN retention_lag.keep_seconds IS 'How long rows of this kind are kept.';
COMMENT ON COLUMN retention_lag.looked_at IS 'Everything that ended up to then was deleted or had to stay; null before the first batch.';
COMMENT ON COLUMN retention_lag.behind_seconds IS 'Age over keep_seconds of the oldest rows that were not looked at yet; 0 when there are none.';
