-- Where rows are named by id their status is compared as text, so that only the primary key can serve: see
-- claim_jobs in deliver.sql.

-- part: facts_of_saga
       s.id, s.status, s.attempt_count, s.next_attempt_at, s.final_error_code, s.subscription_id, e.webhook_id,
       e.traceparent, CASE WHEN s.requeued_from IS NULL THEN e.created_at END AS accepted_at,
       sub.max_retry_limit, sub.base_delay_seconds, now() AS now

-- part: event_and_subscription
  JOIN events e ON e.id = s.event_id
  JOIN subscriptions sub ON sub.id = s.subscription_id

-- part: dead_letters_of_moved
dead AS (
    INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code,
                              reason, failed_at, payload_snapshot)
    SELECT m.id, m.event_id, m.subscription_id, e.tenant_id, e.event_type, m.final_error_code,
           m.reason, clock_timestamp(), e.payload
      FROM moved m JOIN events e ON e.id = m.event_id
     WHERE m.status = 'DeadLettered'
    RETURNING id, saga_id
)

-- name: lock_finished_jobs
-- Unapplied results, oldest first, with their sagas locked. Sagas are locked first, without waiting: a saga
-- that another orchestrator has locked is left to it. The status check is repeated on the locked row. The planner
-- overestimates the number of unapplied results, so LATERAL makes it go from each result to its saga
-- instead of reading every saga in progress.
SELECT j.id AS job_id, j.status AS job_status, j.error_code, j.retry_after_seconds, j.worker_id, j.lease_until, saga.*
  FROM (SELECT id, saga_id, status, error_code, retry_after_seconds, worker_id, lease_until
          FROM webhook_delivery_jobs
         WHERE applied_at IS NULL AND status IN ('Completed', 'Failed')
         ORDER BY id) AS j
 CROSS JOIN LATERAL (
    SELECT
           -- insert: facts_of_saga
      FROM webhook_delivery_sagas s
      -- insert: event_and_subscription
     WHERE s.id = j.saga_id AND s.status::text = 'InProgress'
       FOR NO KEY UPDATE OF s SKIP LOCKED) AS saga
 LIMIT %(limit)s;

-- name: lock_finished_jobs_by_id
SELECT j.id AS job_id, j.status AS job_status, j.error_code, j.retry_after_seconds, j.worker_id, j.lease_until,
       -- insert: facts_of_saga
  FROM webhook_delivery_jobs j
  JOIN webhook_delivery_sagas s ON s.id = j.saga_id AND s.status::text = 'InProgress'
  -- insert: event_and_subscription
 WHERE j.id = ANY (%(job_ids)s::bigint[]) AND j.applied_at IS NULL AND j.status::text IN ('Completed', 'Failed')
   FOR NO KEY UPDATE OF s SKIP LOCKED;

-- name: lock_waiting_sagas
-- Due sagas of one status, by (status, next_attempt_at): Pending ones wait for their first job, PendingRetry ones for
-- the next. They are selected before any join: a planner that expects one row would join and sort the whole backlog.
-- The list of both states repeats the condition of the index.
WITH waiting AS MATERIALIZED (
    SELECT id, status, attempt_count, next_attempt_at, final_error_code, subscription_id, event_id, requeued_from
      FROM webhook_delivery_sagas
     WHERE status IN ('Pending', 'PendingRetry') AND status = %(status)s::saga_status AND next_attempt_at <= now()
     ORDER BY next_attempt_at LIMIT %(limit)s
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT sub.active AND sub.verified AND sub.deleted_at IS NULL AS deliverable,
       -- insert: facts_of_saga
  FROM waiting s
  -- insert: event_and_subscription
 ORDER BY s.next_attempt_at;

-- name: lock_waiting_sagas_by_id
-- Sagas named by messages. One that another session has locked is left to the sweep.
SELECT sub.active AND sub.verified AND sub.deleted_at IS NULL AS deliverable,
       -- insert: facts_of_saga
  FROM webhook_delivery_sagas s
  -- insert: event_and_subscription
 WHERE s.id = ANY (%(saga_ids)s::bigint[])
 ORDER BY s.id
   FOR NO KEY UPDATE OF s SKIP LOCKED;

-- name: lock_sagas_by_id
-- Sagas named by a caller, who waits for the result: this statement waits for locks.
SELECT sub.active AND sub.verified AND sub.deleted_at IS NULL AS deliverable,
       -- insert: facts_of_saga
  FROM webhook_delivery_sagas s
  -- insert: event_and_subscription
 WHERE s.id = ANY (%(saga_ids)s::bigint[]) AND (%(tenant_id)s::text IS NULL OR sub.tenant_id = %(tenant_id)s)
 ORDER BY s.id
   FOR NO KEY UPDATE OF s;

-- name: inactive_subscriptions
-- Reasons why subscriptions receive no deliveries.
SELECT s.id, s.active, s.verified, s.deleted_at, h.disabled_at, h.disabled_reason, h.disabled_failing_since
  FROM subscriptions s LEFT JOIN subscription_health h ON h.subscription_id = s.id
 WHERE s.id = ANY (%(ids)s::bigint[]);

-- name: dead_letter_of_saga
SELECT saga_id, id AS dead_letter_id FROM dead_letters WHERE saga_id = %(saga_id)s;

-- name: apply_results
-- Applies each result once: the saga moves only if applied_at was still null. A job that another session has locked is
-- skipped, with its saga. Each step returns all columns that the next one needs: joining two steps would compare every
-- row with every row.
WITH decision AS MATERIALIZED (
    SELECT * FROM unnest(%(saga_ids)s::bigint[], %(job_ids)s::bigint[], %(statuses)s::saga_status[],
                         %(attempt_counts)s::int[], %(next_attempts)s::timestamptz[], %(error_codes)s::text[],
                         %(reasons)s::text[])
        AS t (saga_id, job_id, status, attempt_count, next_attempt_at, final_error_code, reason)
), held AS MATERIALIZED (
    SELECT d.* FROM decision d JOIN webhook_delivery_jobs j ON j.id = d.job_id AND j.applied_at IS NULL
     ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
), applied AS (
    UPDATE webhook_delivery_jobs j SET applied_at = clock_timestamp()
      FROM held h WHERE j.id = h.job_id
    RETURNING h.saga_id, h.status, h.attempt_count, h.next_attempt_at, h.final_error_code, h.reason
), moved AS (
    UPDATE webhook_delivery_sagas s
       SET status = a.status, attempt_count = a.attempt_count, next_attempt_at = a.next_attempt_at,
           final_error_code = a.final_error_code, updated_at = clock_timestamp()
      FROM applied a
     WHERE s.id = a.saga_id AND s.status::text = 'InProgress'
    RETURNING s.id, s.event_id, s.subscription_id, s.status, s.final_error_code, a.reason
),
-- insert: dead_letters_of_moved
SELECT id AS saga_id, NULL::bigint AS dead_letter_id FROM moved WHERE status <> 'DeadLettered'
UNION ALL
SELECT saga_id, id FROM dead;

-- name: start_attempts
-- Moves waiting sagas on: InProgress ones get their job, DeadLettered ones their dead letter. attempt_at is
-- the next_attempt_at that caused the job, so a second job for one attempt collides.
WITH decision AS MATERIALIZED (
    SELECT * FROM unnest(%(saga_ids)s::bigint[], %(statuses)s::saga_status[], %(error_codes)s::text[],
                         %(max_attempts)s::int[], %(reasons)s::text[])
        AS t (saga_id, status, final_error_code, max_attempts, reason)
), moved AS (
    UPDATE webhook_delivery_sagas s
       SET status = d.status, final_error_code = d.final_error_code, updated_at = clock_timestamp()
      FROM decision d
     WHERE s.id = d.saga_id AND s.status::text IN ('Pending', 'PendingRetry')
    RETURNING s.id, s.event_id, s.subscription_id, s.status, s.attempt_count, s.next_attempt_at, s.final_error_code,
              d.max_attempts, d.reason
), jobs AS (
    INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, max_attempts)
    SELECT id, subscription_id, attempt_count + 1, next_attempt_at, max_attempts
      FROM moved WHERE status = 'InProgress' ORDER BY id
    RETURNING id, saga_id
),
-- insert: dead_letters_of_moved
SELECT saga_id, id AS job_id, NULL::bigint AS dead_letter_id FROM jobs
UNION ALL
SELECT saga_id, NULL, id FROM dead;

-- name: oldest_due
-- Seconds since the oldest due saga became due; null or negative when none is due.
SELECT extract(epoch FROM now() - min(next_attempt_at))::float8 AS seconds
  FROM (SELECT min(next_attempt_at) AS next_attempt_at FROM webhook_delivery_sagas WHERE status = 'Pending'
        UNION ALL
        SELECT min(next_attempt_at) FROM webhook_delivery_sagas WHERE status = 'PendingRetry') AS first_of_each;

-- name: next_attempt_delay
-- Seconds until the next waiting saga is due; null when none waits. A paced first attempt waits too.
SELECT extract(epoch FROM least(
           (SELECT min(next_attempt_at) FROM webhook_delivery_sagas WHERE status = 'Pending'),
           (SELECT min(next_attempt_at) FROM webhook_delivery_sagas WHERE status = 'PendingRetry')
       ) - now())::float8 AS seconds;

-- name: find_undispatched_jobs
-- SQS mode: waiting jobs without a message in a queue. A job so young that its sender may still be sending it is
-- excluded. The condition is that of idx_job_dispatch, which other statements cannot use.
WITH waiting AS MATERIALIZED (
    (SELECT id AS job_id, saga_id, subscription_id, attempt_number FROM webhook_delivery_jobs
      WHERE (status = 'Pending') IS TRUE AND dispatched_at IS NULL
        AND created_at < now() - make_interval(secs => %(grace_seconds)s)
      LIMIT %(limit)s)
    UNION ALL
    (SELECT id, saga_id, subscription_id, attempt_number FROM webhook_delivery_jobs
      WHERE (status = 'Pending') IS TRUE AND dispatched_at < now() - make_interval(secs => %(redispatch_seconds)s)
      ORDER BY dispatched_at LIMIT %(limit)s)
)
SELECT w.job_id, w.saga_id, w.subscription_id, w.attempt_number, e.webhook_id, e.traceparent
  FROM waiting w
  JOIN webhook_delivery_sagas s ON s.id = w.saga_id
  JOIN events e ON e.id = s.event_id;

-- name: mark_dispatched
WITH sent AS MATERIALIZED (
    SELECT id FROM webhook_delivery_jobs
     WHERE id = ANY (%(job_ids)s::bigint[]) AND status::text = 'Pending' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE webhook_delivery_jobs j SET dispatched_at = clock_timestamp() FROM sent WHERE j.id = sent.id RETURNING j.id;
