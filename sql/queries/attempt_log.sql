-- A page is read in two steps: the keys of finished attempts in the order of one index, then the matching ones among
-- them. So each block has one plan, whatever the filter is, and the caller limits how much is read. Positions are
-- (finished_at, id), newest first: a finished row never moves.

-- name: is_of_tenant
SELECT true AS found FROM subscriptions WHERE id = %(subscription_id)s AND tenant_id = %(tenant_id)s;

-- name: subscriptions_of_tenant
-- Deleted ones too: their attempts stay in the log.
SELECT id FROM subscriptions WHERE tenant_id = %(tenant_id)s ORDER BY id LIMIT %(limit)s;

-- part: page
   AND (finished_at, id) < (%(before_at)s::timestamptz, %(before_id)s::bigint)
   AND finished_at >= %(after)s::timestamptz
 ORDER BY finished_at DESC, id DESC LIMIT %(limit)s;

-- part: merged_page
       AND (j.finished_at, j.id) < (%(before_at)s::timestamptz, %(before_id)s::bigint)
       AND j.finished_at >= %(after)s::timestamptz
     ORDER BY j.finished_at DESC, j.id DESC LIMIT %(limit)s) AS newest
 ORDER BY newest.finished_at DESC, newest.id DESC LIMIT %(limit)s;

-- name: scan_all
SELECT id, finished_at FROM webhook_delivery_jobs
 WHERE finished_at IS NOT NULL
   -- insert: page

-- name: scan_subscription
SELECT id, finished_at FROM webhook_delivery_jobs
 WHERE subscription_id = %(subscription_id)s AND finished_at IS NOT NULL
   -- insert: page

-- name: scan_failed_of_subscription
SELECT id, finished_at FROM webhook_delivery_jobs
 WHERE subscription_id = %(subscription_id)s AND status = 'Failed'
   -- insert: page

-- name: scan_error_code
SELECT id, finished_at FROM webhook_delivery_jobs
 WHERE error_code = %(error_code)s AND status = 'Failed'
   -- insert: page

-- name: scan_failed_classes
-- Failures by the first digit of their status: of one class, or the newest of all of them.
SELECT newest.id, newest.finished_at
  FROM unnest(%(classes)s::int[]) AS wanted (class)
 CROSS JOIN LATERAL (
    SELECT j.id, j.finished_at FROM webhook_delivery_jobs j
     WHERE coalesce(j.response_status / 100, 0) = wanted.class AND j.status = 'Failed'
       -- insert: merged_page

-- name: scan_subscriptions
-- Like scan_subscription, for several subscriptions at once.
SELECT newest.id, newest.finished_at
  FROM unnest(%(subscription_ids)s::bigint[]) AS wanted (id)
 CROSS JOIN LATERAL (
    SELECT j.id, j.finished_at FROM webhook_delivery_jobs j
     WHERE j.subscription_id = wanted.id AND j.finished_at IS NOT NULL
       -- insert: merged_page

-- name: scan_failed_of_subscriptions
SELECT newest.id, newest.finished_at
  FROM unnest(%(subscription_ids)s::bigint[]) AS wanted (id)
 CROSS JOIN LATERAL (
    SELECT j.id, j.finished_at FROM webhook_delivery_jobs j
     WHERE j.subscription_id = wanted.id AND j.status = 'Failed'
       -- insert: merged_page

-- name: scan_forward
-- The keys after a position, oldest first, for followers.
SELECT id, finished_at FROM webhook_delivery_jobs
 WHERE finished_at IS NOT NULL AND (finished_at, id) > (%(after_at)s::timestamptz, %(after_id)s::bigint)
 ORDER BY finished_at, id LIMIT %(limit)s;

-- name: read_horizon
-- The time, and then the number of a new transaction: a transaction with a later number finishes attempts at a later
-- time. oldest_open: every transaction with a lower number has ended, and its attempts are visible.
SELECT clock_timestamp() AS at, pg_current_xact_id()::text::bigint AS transaction,
       pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open;

-- part: attempt
       j.id, j.saga_id, e.webhook_id, e.event_type, e.test_subscription_id IS NOT NULL AS is_test,
       e.tenant_id, j.subscription_id, j.status, j.attempt_number, j.max_attempts, g.requeued_from,
       g.resent_from, g.bulk_operation_id, j.worker_id, j.claim_count,
       host(j.resolved_ip) AS resolved_ip, j.reconnected,
       j.response_status, j.error_code, j.duration_ms, j.attempt_at, j.leased_at, j.finished_at

-- part: with_its_event
  FROM webhook_delivery_jobs j
  JOIN webhook_delivery_sagas g ON g.id = j.saga_id
  JOIN events e ON e.id = g.event_id

-- part: matching
 WHERE j.id = ANY (%(ids)s::bigint[]) AND j.finished_at IS NOT NULL
   AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
   AND (%(subscription_id)s::bigint IS NULL OR j.subscription_id = %(subscription_id)s)
   AND (%(event_type)s::text IS NULL OR e.event_type = %(event_type)s)
   AND (%(error_code)s::text IS NULL OR j.error_code = %(error_code)s)
   AND (%(class)s::int IS NULL OR coalesce(j.response_status / 100, 0) = %(class)s)
   AND (%(status)s::text IS NULL OR j.status::text = %(status)s)
   AND (%(finished_after)s::timestamptz IS NULL OR j.finished_at >= %(finished_after)s)
   AND (%(finished_before)s::timestamptz IS NULL OR j.finished_at < %(finished_before)s);

-- name: attempts_by_id
-- The attempts among the named ones that match the filter.
SELECT
       -- insert: attempt
  -- insert: with_its_event
  -- insert: matching

-- name: count_by_id
SELECT count(*) AS attempts
  -- insert: with_its_event
  -- insert: matching

-- name: show_attempt
SELECT g.status::text AS saga_status, j.retry_after_seconds, j.response_headers AS response_head, j.response_body, j.response_truncated,
       j.own_header_names,
       j.sent_format, e.traceparent, e.created_at AS event_created_at,
       CASE WHEN j.sent_format IS NOT NULL THEN
           json_build_object('tenant_id', e.tenant_id, 'source', e.source, 'external_id', e.external_id,
                             'ordering_key', e.ordering_key, 'attributes', e.attributes, 'context', e.cloud_event)::text
       END AS cloud_event,
       -- insert: attempt
  -- insert: with_its_event
 WHERE j.id = %(id)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s);

-- name: request_of_attempt
SELECT s.callback_url, CASE WHEN e.removed_at IS NULL THEN e.payload::text END AS body,
       e.removed_at AS payload_removed_at, num_nonnulls(e.erasure_id) = 1 AS is_erased
  FROM webhook_delivery_jobs j
  JOIN webhook_delivery_sagas g ON g.id = j.saga_id
  JOIN events e ON e.id = g.event_id
  JOIN subscriptions s ON s.id = j.subscription_id
 WHERE j.id = %(id)s;

-- name: subscription_window
-- Counts of the newest attempts of a subscription within the window, at most `sample` of them.
WITH newest AS MATERIALIZED (
    SELECT status, duration_ms, resolved_ip, finished_at FROM webhook_delivery_jobs
     WHERE subscription_id = %(id)s AND finished_at IS NOT NULL
       AND finished_at > now() - make_interval(hours => %(window_hours)s)
     ORDER BY finished_at DESC LIMIT %(sample)s
)
SELECT count(*) FILTER (WHERE status = 'Completed') AS completed,
       count(*) FILTER (WHERE status = 'Failed') AS failed,
       min(finished_at) AS oldest,
       percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration_ms)
           FILTER (WHERE resolved_ip IS NOT NULL) AS latency_ms
  FROM newest;

-- name: subscription_last_error
SELECT error_code AS code, finished_at AS at FROM webhook_delivery_jobs
 WHERE subscription_id = %(id)s AND status = 'Failed'
 ORDER BY finished_at DESC, id DESC LIMIT 1;

-- name: subscription_backlog
-- Counting ends at `most`: an endpoint that is down for a day may have a million waiting.
-- BETWEEN and ORDER BY leave only the index of sagas in progress: with equality a plan that reads the table until it has
-- found so many looks as cheap.
SELECT (SELECT min(next_attempt_at) FROM (
            SELECT next_attempt_at FROM webhook_delivery_sagas
             WHERE subscription_id = %(id)s AND status IN ('Pending', 'PendingRetry') AND status = 'PendingRetry'
             LIMIT %(most)s) AS retrying) AS next_retry_at,
       (SELECT count(*) FROM (
            SELECT FROM webhook_delivery_sagas
             WHERE subscription_id = %(id)s AND status IN ('Pending', 'PendingRetry') AND status = 'PendingRetry'
             LIMIT %(most)s) AS counted) AS waiting_retry,
       in_progress.leased, in_progress.pending
  FROM (SELECT count(*) FILTER (WHERE j.status = 'Leased') AS leased,
               count(*) FILTER (WHERE j.status = 'Pending') AS pending
          FROM (SELECT id FROM webhook_delivery_sagas
                 WHERE status = 'InProgress' AND subscription_id BETWEEN %(id)s AND %(id)s
                 ORDER BY subscription_id LIMIT %(most)s) AS g
          JOIN webhook_delivery_jobs j ON j.saga_id = g.id AND (j.status IN ('Pending', 'Leased')) IS TRUE) AS in_progress;

-- name: subscription_exists
SELECT id FROM subscriptions
 WHERE id = %(id)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);
