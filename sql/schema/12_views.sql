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

CREATE VIEW oldest_due_saga WITH (security_barrier) AS
SELECT due.id AS saga_id, 'evt_' || replace(e.webhook_id::text, '-', '') AS event_id, due.subscription_id,
       due.status::text AS status, due.attempt_count, due.next_attempt_at AS due_at,
       coalesce(extract(epoch FROM now() - due.next_attempt_at), 0)::float8 AS age_seconds
  FROM (VALUES (true)) AS always (one)
  LEFT JOIN LATERAL (
      SELECT id, event_id, subscription_id, status, attempt_count, next_attempt_at FROM (
          (SELECT * FROM webhook_delivery_sagas WHERE status = 'Pending' AND next_attempt_at <= now()
            ORDER BY next_attempt_at LIMIT 1)
          UNION ALL
          (SELECT * FROM webhook_delivery_sagas WHERE status = 'PendingRetry' AND next_attempt_at <= now()
            ORDER BY next_attempt_at LIMIT 1)) AS first_of_each
       ORDER BY next_attempt_at LIMIT 1) AS due ON true
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

-- Repeats the condition of idx_saga_retry_subscription, which alone serves it.
CREATE VIEW retry_debt_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS waiting_sagas, count(*) FILTER (WHERE next_attempt_at <= now()) AS due_sagas,
       min(next_attempt_at) AS next_attempt_at
  FROM webhook_delivery_sagas
 WHERE (status = 'PendingRetry') IS TRUE
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
