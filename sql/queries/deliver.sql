-- part: lease_of_waiting
), picked AS MATERIALIZED (
    SELECT id, false AS alone FROM waiting WHERE NOT is_suspect
    UNION ALL
    SELECT min(id), true FROM waiting WHERE is_suspect AND %(one_alone)s
), claimed AS (
    UPDATE webhook_delivery_jobs j
       SET status = 'Leased', worker_id = %(worker_id)s, claim_count = claim_count + 1,
           leased_at = clock_timestamp(), lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
      FROM picked WHERE j.id = picked.id
    RETURNING j.id, j.saga_id, j.subscription_id, j.attempt_number, j.claim_count, j.leased_at, j.lease_until,
              picked.alone, j.erased
)
SELECT c.id, c.saga_id, c.subscription_id, c.attempt_number, c.claim_count, c.leased_at, c.lease_until,
       e.id AS event_id, e.webhook_id, e.traceparent, e.event_type, e.test_subscription_id IS NOT NULL AS is_test,
       e.created_at AS event_created_at,
       CASE WHEN c.erased THEN '' ELSE coalesce(e.payload::text, '') END AS payload,
       s.callback_url, s.headers::text AS headers, s.timeout_seconds, s.format,
       CASE WHEN s.format <> 'payload' THEN
           json_build_object('tenant_id', e.tenant_id, 'source', e.source, 'external_id', e.external_id,
                             'ordering_key', e.ordering_key, 'attributes', e.attributes, 'context', e.cloud_event)::text
       END AS cloud_event,
       s.active AND s.verified AND s.deleted_at IS NULL AS deliverable,
       (SELECT array_agg(k.secret ORDER BY k.id DESC) FROM subscription_secrets k
         WHERE k.subscription_id = c.subscription_id
           AND (k.expires_at IS NULL OR k.expires_at > now())) AS secrets,
       c.alone, g.requeued_from, g.resent_from, g.bulk_operation_id
  FROM claimed c
  JOIN webhook_delivery_sagas g ON g.id = c.saga_id
  JOIN events e ON e.id = g.event_id
  JOIN subscriptions s ON s.id = c.subscription_id
 ORDER BY c.id

-- name: claim_jobs
-- Leases the named jobs that still wait, and reads what to send; jobs missing from the result belong to another worker.
-- The status is compared as text wherever rows are named by id: a planner with statistics from before a backlog prefers
-- the index of all waiting rows, and reads them all each time; with text only the primary key can serve. Configuration
-- is read here, so a change of address, secret or timeout applies from the next attempt on. Of jobs that repeatedly
-- lost their lease at most one is claimed: a job that kills its worker would cost the others a lease too.
WITH waiting AS MATERIALIZED (
    SELECT id, lost_leases >= %(alone_from)s AS is_suspect FROM webhook_delivery_jobs
     WHERE id = ANY (%(job_ids)s::bigint[]) AND status::text = 'Pending'
     ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
-- insert: lease_of_waiting
;

-- name: claim_waiting_jobs
-- Finds and leases the oldest waiting jobs of one lane in one statement. A row that another session has locked is
-- skipped. The jobs that must be sent alone are left where they may not be claimed, so that they block no other.
WITH waiting AS MATERIALIZED (
    SELECT id, lost_leases >= %(alone_from)s AS is_suspect FROM webhook_delivery_jobs
     WHERE status = 'Pending' AND slow = %(slow)s AND (%(one_alone)s OR lost_leases < %(alone_from)s)
     ORDER BY attempt_at, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
-- insert: lease_of_waiting
;

-- name: record_results
-- Writes results, only where the reporter still holds the lease: worker and claim must match. A result
-- that matches no row came too late and is dropped. The transaction takes its number before any
-- finished_at is read from the clock: followers of the attempt log rely on that (attempt_log.sql). A row that another
-- session has locked is skipped and returned as not written, so that it delays no other (decision 59).
WITH result AS MATERIALIZED (
    SELECT * FROM unnest(%(job_ids)s::bigint[], %(claim_counts)s::int[], %(statuses)s::job_status[],
                         %(response_statuses)s::int[], %(error_codes)s::text[], %(durations)s::int[],
                         %(response_bodies)s::text[], %(truncated)s::boolean[], %(retry_afters)s::int[],
                         %(resolved_ips)s::inet[], %(reconnected)s::boolean[], %(own_header_names)s::text[],
                         %(sent_formats)s::text[], %(response_headers)s::text[])
        AS t (job_id, claim_count, status, response_status, error_code, duration_ms, response_body,
              response_truncated, retry_after_seconds, resolved_ip, reconnected, own_header_names, sent_format,
              response_headers)
     WHERE pg_current_xact_id() IS NOT NULL
     ORDER BY job_id
), held AS MATERIALIZED (
    SELECT r.* FROM result r JOIN webhook_delivery_jobs j ON j.id = r.job_id
     WHERE j.status::text = 'Leased' AND j.worker_id = %(worker_id)s AND j.claim_count = r.claim_count
     ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), written AS (
    UPDATE webhook_delivery_jobs j
       SET status = h.status, lease_until = NULL, finished_at = clock_timestamp(), response_status = h.response_status,
           error_code = h.error_code, duration_ms = h.duration_ms, response_body = h.response_body,
           response_truncated = h.response_truncated, retry_after_seconds = h.retry_after_seconds,
           resolved_ip = h.resolved_ip, reconnected = h.reconnected, own_header_names = h.own_header_names,
           sent_format = h.sent_format, response_headers = h.response_headers
      FROM held h WHERE j.id = h.job_id
    RETURNING j.id
)
SELECT id, true AS is_done FROM written
UNION ALL
SELECT j.id, false FROM result r JOIN webhook_delivery_jobs j ON j.id = r.job_id
 WHERE (SELECT count(*) FROM written) < (SELECT count(*) FROM result)
   AND j.status::text = 'Leased' AND j.worker_id = %(worker_id)s AND j.claim_count = r.claim_count
   AND j.id NOT IN (SELECT id FROM written);

-- name: hand_back_jobs
-- Releases claims whose POST was never started: the job waits again at once, before its lease ends, and loses no lease.
-- A row that another session has locked is returned as not done.
WITH claim AS MATERIALIZED (
    SELECT * FROM unnest(%(job_ids)s::bigint[], %(claim_counts)s::int[]) AS t (job_id, claim_count)
), held AS MATERIALIZED (
    SELECT j.id FROM claim c JOIN webhook_delivery_jobs j ON j.id = c.job_id
     WHERE j.status::text = 'Leased' AND j.worker_id = %(worker_id)s AND j.claim_count = c.claim_count
     ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), waiting AS (
    UPDATE webhook_delivery_jobs j SET status = 'Pending', lease_until = NULL, worker_id = NULL
      FROM held WHERE j.id = held.id
    RETURNING j.id
)
SELECT id, true AS is_done FROM waiting
UNION ALL
SELECT j.id, false FROM claim c JOIN webhook_delivery_jobs j ON j.id = c.job_id
 WHERE (SELECT count(*) FROM waiting) < (SELECT count(*) FROM claim)
   AND j.status::text = 'Leased' AND j.worker_id = %(worker_id)s AND j.claim_count = c.claim_count
   AND j.id NOT IN (SELECT id FROM waiting);

-- name: hand_back_lost_claims
-- Releases what a worker holds by the database and does not know of: the answer to its claim was lost, so nothing was
-- sent. Only of one lane, which claims nothing meanwhile.
WITH held AS MATERIALIZED (
    SELECT id FROM webhook_delivery_jobs
     WHERE status = 'Leased' AND worker_id = %(worker_id)s AND slow = %(slow)s AND id <> ALL (%(in_hand)s::bigint[])
     ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE webhook_delivery_jobs j SET status = 'Pending', lease_until = NULL, worker_id = NULL
  FROM held WHERE j.id = held.id
RETURNING j.id;
