-- name: show_event
SELECT e.id, e.webhook_id, e.traceparent, e.tenant_id, e.event_type, e.test_subscription_id, e.created_at, e.ordering_key,
       e.attributes::text AS attributes, e.extracted_attributes::text AS extracted_attributes,
       e.payload::text AS payload, e.removed_at AS payload_removed_at, num_nonnulls(e.erasure_id) = 1 AS is_erased,
       json_build_object('tenant_id', e.tenant_id, 'source', e.source, 'external_id', e.external_id,
                         'ordering_key', e.ordering_key, 'attributes', e.attributes, 'context', e.cloud_event)::text AS cloud_event,
       (SELECT r.horizon FROM retention_state r WHERE e.created_at < r.horizon) AS pruned_before
  FROM events e
 WHERE e.webhook_id = %(webhook_id)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s);

-- name: event_horizon
SELECT event_horizon FROM retention_state;

-- name: sagas_of_event
SELECT id, subscription_id, status, attempt_count, next_attempt_at, final_error_code, requeued_from, resent_from,
       bulk_operation_id, created_at
  FROM webhook_delivery_sagas WHERE event_id = %(event_id)s ORDER BY id LIMIT %(limit)s;

-- name: attempts_of_sagas
-- With the beginning of each response body: all of them together go into one response of the API.
SELECT id, saga_id, attempt_number, status, attempt_at, leased_at, finished_at, duration_ms, response_status,
       error_code, left(response_body, %(most_characters)s) AS response_body,
       response_truncated OR coalesce(length(response_body) > %(most_characters)s, false) AS response_truncated, worker_id,
       host(resolved_ip) AS resolved_ip, reconnected, retry_after_seconds, claim_count, max_attempts, own_header_names,
       sent_format
  FROM webhook_delivery_jobs WHERE saga_id = ANY (%(saga_ids)s::bigint[]) ORDER BY saga_id, id
 LIMIT %(limit)s;

-- part: stands
       s.id IS NULL AND num_nonnulls(d.payload_snapshot) = 1 AND coalesce(d.final_error_code, '') NOT IN ('canceled', 'discarded')
       AND EXISTS (SELECT FROM subscriptions b WHERE b.id = d.subscription_id AND b.deleted_at IS NULL OFFSET 0)

-- part: dead_letter
       d.id, d.saga_id, e.webhook_id, d.subscription_id, d.tenant_id, d.event_type, d.final_error_code,
       d.reason, d.failed_at, s.id AS requeued_as, e.removed_at AS payload_removed_at,
       num_nonnulls(e.erasure_id) = 1 AS is_erased,
       -- insert: stands
       AS stands
  FROM dead_letters d
  JOIN events e ON e.id = d.event_id
  LEFT JOIN webhook_delivery_sagas s ON s.requeued_from = d.id

-- part: filter_of_dead_letters
 WHERE (%(tenant_id)s::text IS NULL OR d.tenant_id = %(tenant_id)s)
   AND (%(subscription_id)s::bigint IS NULL OR d.subscription_id = %(subscription_id)s)
   AND (%(event_type)s::text IS NULL OR d.event_type = %(event_type)s)
   AND (%(error_code)s::text IS NULL OR d.final_error_code = %(error_code)s)
   AND (%(failed_after)s::timestamptz IS NULL OR d.failed_at >= %(failed_after)s)
   AND (%(failed_before)s::timestamptz IS NULL OR d.failed_at < %(failed_before)s)
   AND (%(after_id)s::bigint IS NULL OR d.id > %(after_id)s)
   AND (%(before_id)s::bigint IS NULL OR d.id < %(before_id)s)
 ORDER BY d.id DESC

-- name: list_dead_letters
SELECT
       -- insert: dead_letter
       -- insert: filter_of_dead_letters
 LIMIT %(limit)s;

-- name: count_dead_letters
-- Among the newest 10,000 of the filter: all, those that were requeued, and those that stand. The limit is a literal, and
-- ids have an upper bound in every case: a plan for any limit or filter would read and sort the table.
SELECT count(*) AS found, count(s.id) AS requeued, count(*) FILTER (WHERE
       -- insert: stands
       ) AS standing
  FROM (SELECT d.*
          FROM (SELECT * FROM dead_letters WHERE id < coalesce(%(before_id)s::bigint, 9223372036854775807)) AS d
       -- insert: filter_of_dead_letters
 LIMIT 10000) AS d
  LEFT JOIN LATERAL (SELECT id FROM webhook_delivery_sagas WHERE requeued_from = d.id LIMIT 1) AS s ON true;

-- name: show_dead_letter
SELECT d.payload_snapshot::text AS payload_snapshot,
       -- insert: dead_letter
 WHERE d.id = %(id)s AND (%(tenant_id)s::text IS NULL OR d.tenant_id = %(tenant_id)s);

-- name: stats
-- Each count reads a partial index that holds open work only. A saga in progress has one job, which waits, is leased, or
-- has a result that is to be applied.
SELECT (SELECT count(*) FROM routing_outbox) AS outbox,
       (SELECT count(*) FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')) AS sagas_waiting,
       (SELECT count(*) FROM webhook_delivery_sagas
         WHERE status IN ('Pending', 'PendingRetry') AND next_attempt_at <= now()) AS sagas_due,
       (SELECT count(*) FROM webhook_delivery_jobs WHERE (status = 'Pending') IS TRUE) AS jobs_pending,
       (SELECT count(*) FROM webhook_delivery_jobs WHERE status = 'Leased') AS jobs_leased,
       (SELECT count(*) FROM webhook_delivery_sagas WHERE status = 'InProgress')
           - (SELECT count(*) FROM webhook_delivery_jobs WHERE (status IN ('Pending', 'Leased')) IS TRUE) AS results_unapplied,
       (SELECT count(*) FROM dead_letters WHERE failed_at > now() - interval '24 hours') AS dead_letters_24h,
       (SELECT CASE WHEN EXISTS (SELECT FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry'))
                    THEN age_seconds END FROM oldest_due_saga) AS oldest_due_seconds,
       (SELECT count(*) FROM webhook_delivery_jobs
         WHERE status = 'Completed' AND finished_at > now() - interval '1 minute') AS delivered_last_minute,
       (SELECT max(behind_seconds) FROM retention_lag) AS retention_behind_seconds;

-- name: check_alive
SELECT true AS alive;

-- name: show_saga
SELECT s.id, s.status, s.final_error_code, e.webhook_id, e.traceparent
  FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
 WHERE s.id = %(id)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s);
