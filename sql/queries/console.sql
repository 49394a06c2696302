-- Queries of the console's pages that the API's stages do not have. Every block reads a bounded number of rows, however
-- large the tables are: counts end at `most`, and rates are taken from samples.

-- name: create_sign_in
SELECT create_console_sign_in(%(token_hash)s, %(key_hash)s, %(valid_seconds)s) AS created;

-- name: use_sign_in
SELECT use_console_sign_in(%(token_hash)s) AS key_hash;

-- name: end_sessions
SELECT end_sessions(%(hashes)s::bytea[], %(valid_until)s::timestamptz, %(callers_now)s::timestamptz) IS NULL AS answer;

-- name: session_has_ended
SELECT session_has_ended(%(hash)s) AS answer;

-- name: moment
-- The end of the figures' time: a whole second, so that an address says it exactly.
SELECT date_trunc('second', now()) AS at,
       CASE WHEN num_nonnulls(due.saga_id) = 1 THEN due.age_seconds END AS oldest_due_seconds, due.event_id AS oldest_due_event,
       (SELECT max(behind_seconds) FROM retention_lag) AS retention_behind_seconds
  FROM oldest_due_saga AS due;

-- name: attempts_by_slice
-- Ended attempts of each slice of time: the last `sample` of it, and when the first of these ended.
SELECT s.place - 1 AS place, count(*) FILTER (WHERE j.status = 'Completed') AS completed,
       count(*) FILTER (WHERE j.status = 'Failed') AS failed, min(j.finished_at) AS oldest
  FROM unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS s (begins, ends, place)
  LEFT JOIN LATERAL (
    SELECT w.status, w.finished_at FROM webhook_delivery_jobs w
     WHERE w.finished_at IS NOT NULL AND w.finished_at >= s.begins AND w.finished_at < s.ends
     ORDER BY w.finished_at DESC LIMIT %(sample)s) AS j ON true
 GROUP BY s.place ORDER BY s.place;

-- name: latencies
-- Time from an event's acceptance to the end of its delivery, with retries, without resends and backfills: of the last
-- `sample` attempts of each slice of a part.
SELECT s.part, percentile_disc(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY l.milliseconds) AS percentiles
  FROM unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[], %(parts)s::int[]) AS s (begins, ends, part)
 CROSS JOIN LATERAL (
    SELECT (extract(epoch FROM greatest(j.finished_at - e.created_at, interval '0')) * 1000)::bigint AS milliseconds
      FROM (SELECT w.saga_id, w.status, w.finished_at FROM webhook_delivery_jobs w
             WHERE w.finished_at IS NOT NULL AND w.finished_at >= s.begins AND w.finished_at < s.ends
             ORDER BY w.finished_at DESC LIMIT %(sample)s) AS j
      JOIN webhook_delivery_sagas g ON g.id = j.saga_id
      JOIN events e ON e.id = g.event_id
     WHERE j.status = 'Completed' AND g.requeued_from IS NULL AND g.resent_from IS NULL AND g.bulk_operation_id IS NULL) AS l
 GROUP BY s.part ORDER BY s.part;

-- name: attempts_of_endpoints
-- Ended attempts and failures of each endpoint in each part of time: at most `sample` of each, the last ones.
SELECT wanted.id AS subscription_id, s.place - 1 AS place, a.attempts, a.oldest, f.failed, f.oldest AS oldest_failed
  FROM unnest(%(ids)s::bigint[]) AS wanted (id)
 CROSS JOIN unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS s (begins, ends, place)
 CROSS JOIN LATERAL (
    SELECT count(*) AS attempts, min(newest.finished_at) AS oldest
      FROM (SELECT w.finished_at FROM webhook_delivery_jobs w
             WHERE w.subscription_id = wanted.id AND w.finished_at IS NOT NULL
               AND w.finished_at >= s.begins AND w.finished_at < s.ends
             ORDER BY w.finished_at DESC LIMIT %(sample)s) AS newest) AS a
 CROSS JOIN LATERAL (
    SELECT count(*) AS failed, min(newest.finished_at) AS oldest
      FROM (SELECT w.finished_at FROM webhook_delivery_jobs w
             WHERE w.subscription_id = wanted.id AND w.status = 'Failed'
               AND w.finished_at >= s.begins AND w.finished_at < s.ends
             ORDER BY w.finished_at DESC LIMIT %(sample)s) AS newest) AS f
 ORDER BY wanted.id, s.place;

-- name: count_of_endpoints
-- Ended attempts and failures of each endpoint, each counted up to `most` on its index.
SELECT wanted.id AS subscription_id,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_jobs w
                               WHERE w.subscription_id = wanted.id AND w.finished_at IS NOT NULL
                                 AND w.finished_at >= %(after)s AND w.finished_at < %(before)s
                               ORDER BY w.finished_at DESC LIMIT %(most)s) AS counted) AS attempts,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_jobs w
                               WHERE w.subscription_id = wanted.id AND w.status = 'Failed'
                                 AND w.finished_at >= %(after)s AND w.finished_at < %(before)s
                               ORDER BY w.finished_at DESC LIMIT %(most)s) AS counted) AS failed
  FROM unnest(%(ids)s::bigint[]) AS wanted (id);

-- part: due
WITH RECURSIVE waits (subscription_id) AS (
    (SELECT subscription_id FROM webhook_delivery_sagas
      WHERE status IN ('Pending', 'PendingRetry') AND subscription_id BETWEEN %(first)s AND %(last)s
      ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT s.subscription_id FROM webhook_delivery_sagas s
             WHERE s.status IN ('Pending', 'PendingRetry') AND s.subscription_id > waits.subscription_id
               AND s.subscription_id <= %(last)s
             ORDER BY s.subscription_id LIMIT 1)
      FROM waits WHERE waits.subscription_id IS NOT NULL
), due AS MATERIALIZED (
    SELECT of_one.*
      FROM waits CROSS JOIN (VALUES (0), (1)) AS kind (keys)
     CROSS JOIN LATERAL (
        SELECT g.id, g.event_id, g.subscription_id, g.status, g.attempt_count, g.next_attempt_at
          FROM webhook_delivery_sagas g
         WHERE g.subscription_id = waits.subscription_id AND num_nonnulls(g.ordering_key) = kind.keys
           AND g.status IN ('Pending', 'PendingRetry') AND g.next_attempt_at <= now()
         ORDER BY g.next_attempt_at, g.id LIMIT %(most)s) AS of_one
     LIMIT %(most)s
)

-- part: open_row
SELECT e.webhook_id, e.event_type, e.tenant_id, w.id AS saga_id, w.subscription_id, w.status::text AS status,
       w.attempt_count, w.next_attempt_at AS at
  FROM w CROSS JOIN LATERAL (SELECT * FROM events WHERE events.id = w.event_id LIMIT 1) AS e
 ORDER BY w.next_attempt_at, w.id;

-- name: count_open_work
-- Open work, each kind counted up to `most` on the partial index that holds only this kind. scanned: the deliveries that
-- wait for an attempt; where these are `most`, there may be more retries.
SELECT (SELECT count(*) FROM (SELECT FROM routing_outbox ORDER BY event_id LIMIT %(most)s) AS counted) AS unrouted,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_jobs
                               WHERE status = 'Leased' AND subscription_id BETWEEN %(first)s AND %(last)s
                               ORDER BY lease_until LIMIT %(most)s) AS counted) AS in_flight,
       count(*) AS scanned,
       count(*) FILTER (WHERE status = 'PendingRetry' AND next_attempt_at > now()) AS retrying
  FROM (SELECT status, next_attempt_at FROM webhook_delivery_sagas
         WHERE status IN ('Pending', 'PendingRetry') AND subscription_id BETWEEN %(first)s AND %(last)s
         ORDER BY subscription_id LIMIT %(most)s) AS waiting;

-- name: unrouted_events
-- No subscription is known yet, so the range of subscriptions is not used.
SELECT e.webhook_id, e.event_type, e.tenant_id, NULL::bigint AS saga_id, NULL::bigint AS subscription_id,
       NULL::text AS status, NULL::int AS attempt_count, e.created_at AS at
  FROM (SELECT event_id FROM routing_outbox ORDER BY event_id LIMIT least(%(limit)s::int, %(most)s::int)) AS o
 CROSS JOIN LATERAL (SELECT * FROM events WHERE events.id = o.event_id LIMIT 1) AS e
 WHERE %(first)s::bigint <= %(last)s::bigint
 ORDER BY e.id;

-- name: count_due
-- Goes from one waiting subscription to the next, so that a million retries of tomorrow hide none that is due.
-- insert: due
SELECT count(*) AS due FROM due;

-- name: due_sagas
-- insert: due
, w AS MATERIALIZED (SELECT * FROM due ORDER BY next_attempt_at, id LIMIT %(limit)s)
-- insert: open_row

-- name: retrying_sagas
-- Those that are counted are found on the index alone, and only the page's rows are read.
WITH found AS MATERIALIZED (
    SELECT id, next_attempt_at
      FROM (SELECT id, status, next_attempt_at FROM webhook_delivery_sagas
             WHERE status IN ('Pending', 'PendingRetry') AND subscription_id BETWEEN %(first)s AND %(last)s
             ORDER BY subscription_id LIMIT %(most)s) AS waiting
     WHERE status = 'PendingRetry' AND next_attempt_at > now()
     ORDER BY next_attempt_at, id LIMIT %(limit)s
), w AS MATERIALIZED (
    SELECT g.* FROM found CROSS JOIN LATERAL (SELECT * FROM webhook_delivery_sagas WHERE id = found.id LIMIT 1) AS g
)
-- insert: open_row

-- name: leased_sagas
WITH w AS MATERIALIZED (
    SELECT g.id, g.event_id, j.subscription_id, j.status, j.attempt_number AS attempt_count, j.leased_at AS next_attempt_at
      FROM (SELECT * FROM webhook_delivery_jobs
             WHERE status = 'Leased' AND subscription_id BETWEEN %(first)s AND %(last)s
             ORDER BY lease_until LIMIT least(%(limit)s::int, %(most)s::int)) AS j
      JOIN webhook_delivery_sagas g ON g.id = j.saga_id
)
-- insert: open_row

-- name: error_codes
-- The error codes of a time, each counted up to `most`: goes from one code to the next on the index of failures.
WITH RECURSIVE codes AS (
    (SELECT error_code FROM webhook_delivery_jobs WHERE status = 'Failed' AND error_code IS NOT NULL
      ORDER BY error_code LIMIT 1)
    UNION ALL
    SELECT (SELECT j.error_code FROM webhook_delivery_jobs j
             WHERE j.status = 'Failed' AND j.error_code > codes.error_code ORDER BY j.error_code LIMIT 1)
      FROM codes WHERE codes.error_code IS NOT NULL
)
SELECT codes.error_code, counted.attempts, counted.last_at
  FROM codes CROSS JOIN LATERAL (
    SELECT count(*) AS attempts, max(f.finished_at) AS last_at
      FROM (SELECT j.finished_at FROM webhook_delivery_jobs j
             WHERE j.error_code = codes.error_code AND j.status = 'Failed'
               AND j.finished_at >= %(after)s::timestamptz AND j.finished_at < %(before)s::timestamptz
             ORDER BY j.finished_at DESC, j.id DESC LIMIT %(most)s) AS f) AS counted
 WHERE counted.attempts > 0
 ORDER BY counted.attempts DESC, codes.error_code LIMIT %(limit)s;

-- name: failing_endpoints
-- Endpoints that are still tried and only fail, the longest-failing first.
SELECT s.id, s.tenant_id, s.description, s.event_types, s.callback_url, h.consecutive_failures, h.first_failure_at,
       h.last_error_code, h.disabled_at, h.disabled_reason
  FROM subscription_health h JOIN subscriptions s ON s.id = h.subscription_id
 WHERE h.first_failure_at IS NOT NULL AND h.disabled_at IS NULL AND s.active AND s.deleted_at IS NULL
 ORDER BY h.first_failure_at LIMIT %(limit)s;

-- name: disabled_endpoints
SELECT s.id, s.tenant_id, s.description, s.event_types, s.callback_url, h.consecutive_failures, h.first_failure_at,
       h.last_error_code, h.disabled_at, h.disabled_reason
  FROM subscription_health h JOIN subscriptions s ON s.id = h.subscription_id
 WHERE h.disabled_at IS NOT NULL AND NOT s.active AND s.deleted_at IS NULL
 ORDER BY h.disabled_at DESC LIMIT %(limit)s;

-- name: health_of_subscriptions
SELECT h.subscription_id, h.consecutive_failures, h.first_failure_at, h.last_success_at, h.last_error_code,
       h.disabled_at
  FROM subscription_health h WHERE h.subscription_id = ANY (%(ids)s::bigint[]);
