-- Queries of the console's pages that the API's stages do not have. Every block reads a bounded number of rows, however
-- large the tables are: counts end at `most`, or are taken from samples.

-- name: create_sign_in
SELECT create_console_sign_in(%(token_hash)s, %(key_hash)s, %(valid_seconds)s) AS created;

-- name: use_sign_in
SELECT use_console_sign_in(%(token_hash)s) AS key_hash;

-- name: end_sessions
SELECT end_sessions(%(hashes)s::bytea[], %(valid_until)s::timestamptz, %(callers_now)s::timestamptz) IS NULL AS answer;

-- name: session_has_ended
SELECT session_has_ended(%(hash)s) AS answer;

-- name: minutes
-- Ended attempts by minute: the last `sample` of each minute, and when the first of these ended.
SELECT m.minute, count(j.finished_at) AS seen, count(*) FILTER (WHERE j.status = 'Completed') AS completed,
       count(*) FILTER (WHERE j.status = 'Failed') AS failed, min(j.finished_at) AS oldest,
       max(j.finished_at) AS newest
  FROM generate_series(date_trunc('minute', now()) - make_interval(mins => %(minutes)s - 1),
                       date_trunc('minute', now()), interval '1 minute') AS m (minute)
  LEFT JOIN LATERAL (
    SELECT w.status, w.finished_at FROM webhook_delivery_jobs w
     WHERE w.finished_at IS NOT NULL AND w.finished_at >= m.minute
       AND w.finished_at < m.minute + interval '1 minute'
     ORDER BY w.finished_at DESC LIMIT %(sample)s) AS j ON true
 GROUP BY m.minute ORDER BY m.minute;

-- name: latencies
-- Time from an event's acceptance to the end of its delivery, with retries, without resends and backfills: of the last
-- `sample` attempts of each minute.
SELECT m.minute, percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY l.milliseconds) AS percentiles
  FROM generate_series(date_trunc('minute', now()) - make_interval(mins => %(minutes)s - 1),
                       date_trunc('minute', now()), interval '1 minute') AS m (minute)
 CROSS JOIN LATERAL (
    SELECT (extract(epoch FROM greatest(j.finished_at - e.created_at, interval '0')) * 1000)::bigint AS milliseconds
      FROM (SELECT w.saga_id, w.status, w.finished_at FROM webhook_delivery_jobs w
             WHERE w.finished_at IS NOT NULL AND w.finished_at >= m.minute
               AND w.finished_at < m.minute + interval '1 minute'
             ORDER BY w.finished_at DESC LIMIT %(sample)s) AS j
      JOIN webhook_delivery_sagas g ON g.id = j.saga_id
      JOIN events e ON e.id = g.event_id
     WHERE j.status = 'Completed' AND g.requeued_from IS NULL AND g.resent_from IS NULL AND g.bulk_operation_id IS NULL) AS l
 GROUP BY m.minute ORDER BY m.minute;

-- name: backlog
-- Open work, each kind counted up to `most` on the partial index that holds only this kind.
SELECT (SELECT count(*) FROM (SELECT FROM routing_outbox ORDER BY event_id LIMIT %(most)s) AS counted) AS unrouted,
       waiting.due, waiting.retrying,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_jobs WHERE (status = 'Pending') IS TRUE
                               LIMIT %(most)s) AS counted) AS ready,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_jobs WHERE status = 'Leased' LIMIT %(most)s) AS counted
       ) AS in_flight,
       (SELECT count(*) FROM (SELECT FROM dead_letters WHERE failed_at > now() - interval '24 hours'
                               LIMIT %(most)s) AS counted) AS dead_letters_24h,
       CASE WHEN waiting.sagas > 0 THEN (SELECT age_seconds FROM oldest_due_saga) END AS oldest_due_seconds,
       (SELECT max(behind_seconds) FROM retention_lag) AS retention_behind_seconds, now() AS at
  FROM (SELECT count(*) AS sagas, count(*) FILTER (WHERE next_attempt_at <= now()) AS due,
               count(*) FILTER (WHERE status = 'PendingRetry' AND next_attempt_at > now()) AS retrying
          FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')
                 LIMIT %(most)s) AS counted) AS waiting;

-- name: oldest_due
-- The oldest due saga of each subscription that could start it, oldest first.
SELECT due.id, due.subscription_id, due.status::text AS status, due.attempt_count, due.next_attempt_at,
       e.webhook_id, e.event_type
  FROM oldest_due_by_subscription due
  JOIN events e ON e.id = due.event_id
 ORDER BY due.next_attempt_at LIMIT %(limit)s;

-- name: newest_failures
-- The error codes of the last `sample` failures of the last hour.
SELECT newest.error_code, count(*) AS attempts, max(newest.finished_at) AS last_at
  FROM (
    SELECT f.error_code, f.finished_at
      FROM generate_series(0, 9) AS wanted (class)
     CROSS JOIN LATERAL (
        SELECT j.error_code, j.finished_at FROM webhook_delivery_jobs j
         WHERE coalesce(j.response_status / 100, 0) = wanted.class AND j.status = 'Failed'
           AND j.finished_at > now() - interval '1 hour'
         ORDER BY j.finished_at DESC, j.id DESC LIMIT %(sample)s) AS f
     ORDER BY f.finished_at DESC LIMIT %(sample)s) AS newest
 GROUP BY newest.error_code ORDER BY attempts DESC, newest.error_code LIMIT %(limit)s;

-- name: failing_endpoints
-- Endpoints that are still tried and only fail, the longest-failing first.
SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.consecutive_failures, h.first_failure_at,
       h.last_error_code, h.disabled_at, h.disabled_reason
  FROM subscription_health h JOIN subscriptions s ON s.id = h.subscription_id
 WHERE h.first_failure_at IS NOT NULL AND h.disabled_at IS NULL AND s.active AND s.deleted_at IS NULL
 ORDER BY h.first_failure_at LIMIT %(limit)s;

-- name: disabled_endpoints
SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.consecutive_failures, h.first_failure_at,
       h.last_error_code, h.disabled_at, h.disabled_reason
  FROM subscription_health h JOIN subscriptions s ON s.id = h.subscription_id
 WHERE h.disabled_at IS NOT NULL AND NOT s.active AND s.deleted_at IS NULL
 ORDER BY h.disabled_at DESC LIMIT %(limit)s;

-- name: health_of_subscriptions
SELECT h.subscription_id, h.consecutive_failures, h.first_failure_at, h.last_success_at, h.last_error_code,
       h.disabled_at
  FROM subscription_health h WHERE h.subscription_id = ANY (%(ids)s::bigint[]);
