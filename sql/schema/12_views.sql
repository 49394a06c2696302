-- What dashboards read. The views run with their owner's rights, so that whoever reads them needs none on the tables;
-- as security barriers they show a reader's functions no row that they leave out.
CREATE VIEW outbox_age WITH (security_barrier) AS
SELECT 'evt_' || replace(e.webhook_id::text, '-', '') AS event_id, oldest.created_at AS accepted_at,
       coalesce(greatest(extract(epoch FROM now() - oldest.created_at), 0), 0)::float8 AS age_seconds
  FROM (VALUES (true)) AS always (one)
  LEFT JOIN LATERAL (SELECT event_id, created_at FROM routing_outbox ORDER BY event_id LIMIT 1) AS oldest ON true
  LEFT JOIN events e ON e.id = oldest.event_id;

COMMENT ON VIEW outbox_age IS
    'How long the first event in the outbox has waited for the router. Always one row.';
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
    'The saga whose next attempt is overdue the longest. Always one row. Some age is normal only under load.';
COMMENT ON COLUMN oldest_due_saga.saga_id IS 'The saga, or null when none is due.';
COMMENT ON COLUMN oldest_due_saga.event_id IS 'Its event.';
COMMENT ON COLUMN oldest_due_saga.subscription_id IS 'Its subscription.';
COMMENT ON COLUMN oldest_due_saga.status IS 'Pending before its first attempt, PendingRetry before a later one.';
COMMENT ON COLUMN oldest_due_saga.attempt_count IS 'How many of its attempts have failed.';
COMMENT ON COLUMN oldest_due_saga.due_at IS 'When its next attempt was due.';
COMMENT ON COLUMN oldest_due_saga.age_seconds IS 'Seconds since then; 0 when none is due.';

-- Counted on idx_saga_retry_subscription alone, whose condition it repeats.
CREATE VIEW retry_debt_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS waiting_sagas, count(*) FILTER (WHERE next_attempt_at <= now()) AS due_sagas,
       min(next_attempt_at) AS next_attempt_at
  FROM webhook_delivery_sagas
 WHERE (status = 'PendingRetry') IS TRUE
 GROUP BY subscription_id;

COMMENT ON VIEW retry_debt_by_subscription IS
    'Deliveries that have failed at least once and wait for another attempt. One row for each subscription with any.';
COMMENT ON COLUMN retry_debt_by_subscription.subscription_id IS 'Whose receiver owes us a success.';
COMMENT ON COLUMN retry_debt_by_subscription.waiting_sagas IS 'How many sagas are in PendingRetry.';
COMMENT ON COLUMN retry_debt_by_subscription.due_sagas IS 'How many of these may be tried now.';
COMMENT ON COLUMN retry_debt_by_subscription.next_attempt_at IS 'When the first of them is or was due.';

CREATE VIEW in_flight_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS leased_jobs, count(*) FILTER (WHERE lease_until < now()) AS expired_leases,
       min(leased_at) AS oldest_leased_at
  FROM webhook_delivery_jobs
 WHERE status = 'Leased'
 GROUP BY subscription_id;

COMMENT ON VIEW in_flight_by_subscription IS
    'Attempts that a worker holds now. One row for each subscription with any.';
COMMENT ON COLUMN in_flight_by_subscription.subscription_id IS 'To whose receiver they go.';
COMMENT ON COLUMN in_flight_by_subscription.leased_jobs IS 'How many jobs are Leased.';
COMMENT ON COLUMN in_flight_by_subscription.expired_leases IS
    'How many of these leases are over: their workers died or are late, and the lease cleaner has not come yet.';
COMMENT ON COLUMN in_flight_by_subscription.oldest_leased_at IS 'When the oldest of them was claimed.';

CREATE VIEW deliveries_per_minute WITH (security_barrier) AS
SELECT date_trunc('minute', finished_at) AS minute,
       count(*) FILTER (WHERE status = 'Completed') AS succeeded, count(*) FILTER (WHERE status = 'Failed') AS failed,
       round(avg(duration_ms), 1)::float8 AS mean_duration_ms, max(duration_ms) AS max_duration_ms
  FROM webhook_delivery_jobs
 WHERE finished_at > now() - interval '1 hour'
 GROUP BY date_trunc('minute', finished_at);

COMMENT ON VIEW deliveries_per_minute IS
    'Attempts that ended within the last hour, by minute. Reads as many rows as attempts ended, so ask once a minute.';
COMMENT ON COLUMN deliveries_per_minute.minute IS 'The minute in which they ended; the first and the last are not whole.';
COMMENT ON COLUMN deliveries_per_minute.succeeded IS 'Attempts that the receiver answered with 2xx.';
COMMENT ON COLUMN deliveries_per_minute.failed IS
    'Attempts with any other end, but for leases that ran out: those have no end of their own.';
COMMENT ON COLUMN deliveries_per_minute.mean_duration_ms IS 'Mean time of their POSTs, in milliseconds.';
COMMENT ON COLUMN deliveries_per_minute.max_duration_ms IS 'Longest time of their POSTs, in milliseconds.';
