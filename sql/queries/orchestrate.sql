-- Where rows are named by id their status is compared as text, so that only the primary key can serve: see
-- claim_jobs in deliver.sql.

-- part: facts_of_saga
       s.id, s.status, s.attempt_count, s.next_attempt_at, s.final_error_code, s.subscription_id, e.webhook_id,
       e.traceparent, CASE WHEN num_nonnulls(s.requeued_from, s.resent_from) = 0 THEN e.created_at END AS accepted_at,
       sub.max_retry_limit, sub.base_delay_seconds, now() AS now

-- part: facts_of_result
       j.id AS job_id, j.status AS job_status,
       CASE WHEN j.erased AND j.status::text = 'Failed' THEN 'erased' ELSE j.error_code END AS error_code, j.retry_after_seconds, j.worker_id, j.leased_at,
       j.duration_ms,

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

-- part: waiting_sagas
  FROM webhook_delivery_sagas g
 WHERE g.status IN ('Pending', 'PendingRetry')

-- part: flow_and_settings
       f.subscription_id, f.version, f.in_flight_limit, f.limit_halved_at, f.tokens, f.tokens_at, f.retry_after_until,
       f.failures_in_a_row, f.breaker_opened_at, f.probes, f.probe_at, f.probe_saga_id, f.slow_until, f.wake_at,
       f.order_cursor, f.discard_through,
       s.active AND s.verified AND s.deleted_at IS NULL AS deliverable, s.paused_at, s.resumed_at, s.max_in_flight,
       s.rate_limit_count, s.rate_limit_seconds, s.circuit_breaker, s.max_wait_seconds, s.max_retry_limit

-- part: flow_arrays
           %(flow_subscription_id)s::bigint[], %(flow_version)s::bigint[], %(flow_in_flight_limit)s::float8[],
           %(flow_limit_halved_at)s::timestamptz[], %(flow_tokens)s::float8[],
           %(flow_tokens_at)s::timestamptz[], %(flow_retry_after_until)s::timestamptz[],
           %(flow_failures_in_a_row)s::int[], %(flow_breaker_opened_at)s::timestamptz[], %(flow_probes)s::int[],
           %(flow_probe_at)s::timestamptz[], %(flow_probe_saga_id)s::bigint[],
           %(flow_slow_until)s::timestamptz[], %(flow_wake_at)s::timestamptz[], %(flow_order_cursor)s::text[],
           %(flow_discard_through)s::bigint[]
       ) AS w (subscription_id, version, in_flight_limit, limit_halved_at, tokens, tokens_at, retry_after_until,
           failures_in_a_row, breaker_opened_at, probes, probe_at, probe_saga_id, slow_until, wake_at,
           order_cursor, discard_through)

-- part: flow_of_w
       in_flight_limit = w.in_flight_limit, limit_halved_at = w.limit_halved_at, tokens = w.tokens, tokens_at =
       w.tokens_at, retry_after_until = w.retry_after_until, failures_in_a_row = w.failures_in_a_row,
       breaker_opened_at = w.breaker_opened_at, probes = w.probes, probe_at = w.probe_at, probe_saga_id =
       w.probe_saga_id, slow_until = w.slow_until, wake_at = w.wake_at, order_cursor = w.order_cursor,
       discard_through = w.discard_through

-- part: decided_results
WITH decision AS MATERIALIZED (
    SELECT * FROM unnest(%(saga_ids)s::bigint[], %(attempts_at)s::timestamptz[], %(statuses)s::saga_status[],
                         %(attempt_counts)s::int[], %(next_attempts)s::timestamptz[], %(error_codes)s::text[],
                         %(reasons)s::text[], %(subscription_ids)s::bigint[], %(change_flow)s::boolean[])
        AS t (saga_id, attempt_at, status, attempt_count, next_attempt_at, final_error_code, reason, subscription_id,
              changes_flow)
), held AS MATERIALIZED (
    SELECT d.*
      FROM decision d
      JOIN webhook_delivery_sagas s ON s.id = d.saga_id
     WHERE s.status::text = 'InProgress' AND s.next_attempt_at = d.attempt_at
     ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED

-- part: moved_sagas
), moved AS (
    UPDATE webhook_delivery_sagas s
       SET status = d.status, attempt_count = d.attempt_count, next_attempt_at = d.next_attempt_at,
           final_error_code = d.final_error_code, updated_at = clock_timestamp()
      FROM held d
     WHERE s.id = d.saga_id AND s.status::text = 'InProgress'

-- part: flow_of_result
       -- The flow of the subscription, once for each: what is in progress, and whether more is due, outside of the order
       -- or in it. EXISTS would allow a plan that reads all waiting sagas into a hash table, and after old statistics
       -- that one is chosen.
       CASE WHEN row_number() OVER (PARTITION BY r.subscription_id) = 1 THEN (
           SELECT row_to_json(flow)::text
             FROM (SELECT
                          -- insert: flow_and_settings
                          , (SELECT count(*) FROM (
                              SELECT FROM webhook_delivery_sagas g
                               WHERE g.status = 'InProgress' AND g.subscription_id = s.id
                               LIMIT 1000) AS counted) AS in_flight,
                          num_nonnulls((
                              SELECT g.id
                              -- insert: waiting_sagas
                                 AND g.subscription_id = s.id AND num_nonnulls(g.ordering_key) = 0
                                 AND g.next_attempt_at <= now()
                               ORDER BY g.next_attempt_at, g.id LIMIT 1)) > 0 AS has_due,
                          num_nonnulls((
                              SELECT g.id
                              -- insert: waiting_sagas
                                 AND g.subscription_id = s.id AND num_nonnulls(g.ordering_key) = 1
                                 AND g.next_attempt_at <= now()
                               ORDER BY g.next_attempt_at, g.id LIMIT 1)) > 0 AS has_ordered_due,
                          now() AS now
                     FROM subscription_flow f JOIN subscriptions s ON s.id = f.subscription_id
                    WHERE f.subscription_id = r.subscription_id) AS flow) END AS flow

-- name: unapplied_results
-- Jobs whose result is to be applied, among a page of the sagas in progress, and where a full page has ended.
WITH page AS MATERIALIZED (
    SELECT subscription_id, id, next_attempt_at FROM webhook_delivery_sagas
     WHERE status = 'InProgress' AND (subscription_id, id) > (%(after_subscription)s::bigint, %(after_saga)s::bigint)
     ORDER BY subscription_id, id LIMIT %(limit)s
)
SELECT coalesce(array_agg(found.id) FILTER (WHERE num_nonnulls(found.id) = 1), '{}') AS job_ids,
       CASE WHEN count(*) = %(limit)s THEN
           max(ARRAY[p.subscription_id, p.id]) END AS last
  FROM page p
  LEFT JOIN LATERAL (
      SELECT j.id FROM webhook_delivery_jobs j
       WHERE j.saga_id = p.id AND j.attempt_at = p.next_attempt_at AND j.status::text IN ('Completed', 'Failed')
      OFFSET 0) AS found ON true;

-- part: results
SELECT r.*,
       -- insert: flow_of_result
  FROM (SELECT
               -- insert: facts_of_result
               -- insert: facts_of_saga
          FROM webhook_delivery_jobs j
          JOIN webhook_delivery_sagas s ON s.id = j.saga_id AND s.status::text = 'InProgress'
          -- insert: event_and_subscription
         WHERE j.id = ANY (%(job_ids)s::bigint[]) AND j.attempt_at = s.next_attempt_at
           AND j.status::text IN ('Completed', 'Failed')

-- name: finished_jobs
-- Results of the named jobs that are to be applied, locked or not: each lock would be a record in the log.
-- insert: results
       ) AS r
 ORDER BY job_id;

-- name: unlocked_results
-- The same. What another session has locked is left to it.
-- insert: results
           FOR NO KEY UPDATE OF s SKIP LOCKED) AS r
 ORDER BY job_id;

-- name: lock_sagas_by_id
-- Sagas named by a caller, who waits for the result: this statement waits for locks.
SELECT 'canceled' AS cause,
       -- insert: facts_of_saga
  FROM webhook_delivery_sagas s
  -- insert: event_and_subscription
 WHERE s.id = ANY (%(saga_ids)s::bigint[]) AND (%(tenant_id)s::text IS NULL OR sub.tenant_id = %(tenant_id)s)
 ORDER BY s.id
   FOR NO KEY UPDATE OF s;

-- name: due_sagas
-- The waiting sagas of one subscription that are due, to find the one that the database rejects.
SELECT '' AS cause,
       -- insert: facts_of_saga
  FROM webhook_delivery_sagas s
  -- insert: event_and_subscription
 WHERE s.subscription_id = %(subscription_id)s AND s.status IN ('Pending', 'PendingRetry') AND s.next_attempt_at <= now()
 ORDER BY s.next_attempt_at, s.id LIMIT %(limit)s;

-- name: inactive_subscriptions
-- Reasons why subscriptions receive no deliveries.
SELECT s.id, s.active, s.verified, s.deleted_at, h.disabled_at, h.disabled_reason, h.disabled_failing_since
  FROM subscriptions s LEFT JOIN subscription_health h ON h.subscription_id = s.id
 WHERE s.id = ANY (%(ids)s::bigint[]);

-- name: dead_letter_of_saga
SELECT saga_id, id AS dead_letter_id FROM dead_letters WHERE saga_id = %(saga_id)s;

-- name: apply_results
-- Applies each result once: the saga moves only if it is still in progress with the same attempt. No lock is held since
-- the decision; what another session has locked is passed by and stays for the next call. For results that change
-- no flow and make no dead letter, which are most: each step costs its beginning and end, used or not.
-- insert: decided_results
-- insert: moved_sagas
    RETURNING s.id
)
SELECT id AS saga_id, NULL::bigint AS dead_letter_id FROM moved;

-- name: apply_results_and_flow
-- The same, with dead letters and changes of flow. A result that changes the flow of its subscription is applied together
-- with that change: only if the flow row is as it was when the decision was made, and if all results that made the change
-- are applied. Each step returns all columns that the next one needs: joining two steps would compare every row with
-- every row.
-- insert: decided_results
), all_held AS MATERIALIZED (
    SELECT subscription_id
      FROM (SELECT subscription_id, 1 AS missing FROM decision UNION ALL SELECT subscription_id, -1 FROM held) AS counted
     GROUP BY subscription_id HAVING sum(missing) = 0
), flow AS MATERIALIZED (
    SELECT w.* FROM unnest(
       -- insert: flow_arrays
      JOIN subscription_flow f ON f.subscription_id = w.subscription_id AND f.version = w.version
     WHERE (w.subscription_id IN (SELECT subscription_id FROM all_held)) IS TRUE -- or it would be such a join
     ORDER BY f.subscription_id FOR NO KEY UPDATE OF f SKIP LOCKED
), written AS (
    UPDATE subscription_flow f
       SET version = f.version + 1,
           -- insert: flow_of_w
      FROM flow w WHERE f.subscription_id = w.subscription_id
    RETURNING f.subscription_id
-- insert: moved_sagas
       AND (NOT d.changes_flow OR d.subscription_id IN (SELECT subscription_id FROM written))
    RETURNING s.id, s.event_id, s.subscription_id, s.status, s.final_error_code, d.reason
),
-- insert: dead_letters_of_moved
SELECT id AS saga_id, NULL::bigint AS dead_letter_id FROM moved WHERE status <> 'DeadLettered'
UNION ALL
SELECT saga_id, id FROM dead;

-- name: dead_letter_waiting
-- Ends waiting sagas as dead letters, without another attempt.
WITH decision AS MATERIALIZED (
    SELECT * FROM unnest(%(saga_ids)s::bigint[], %(error_codes)s::text[], %(reasons)s::text[])
        AS t (saga_id, final_error_code, reason)
), moved AS (
    UPDATE webhook_delivery_sagas s
       SET status = 'DeadLettered', final_error_code = d.final_error_code, updated_at = clock_timestamp()
      FROM decision d
     WHERE s.id = d.saga_id AND s.status::text IN ('Pending', 'PendingRetry')
    RETURNING s.id, s.event_id, s.subscription_id, s.status, s.final_error_code, d.reason
),
-- insert: dead_letters_of_moved
SELECT saga_id, id AS dead_letter_id FROM dead;

-- name: find_undispatched_jobs
-- SQS mode: waiting jobs without a message in a queue. A job so young that its sender may still be sending it is
-- excluded. The condition is that of idx_job_dispatch, which other statements cannot use.
WITH waiting AS MATERIALIZED (
    (SELECT id AS job_id, saga_id, subscription_id, slow FROM webhook_delivery_jobs
      WHERE (status = 'Pending') IS TRUE AND dispatched_at IS NULL
        AND created_at < now() - make_interval(secs => %(grace_seconds)s)
      LIMIT %(limit)s)
    UNION ALL
    (SELECT id, saga_id, subscription_id, slow FROM webhook_delivery_jobs
      WHERE (status = 'Pending') IS TRUE AND dispatched_at < now() - make_interval(secs => %(redispatch_seconds)s)
      ORDER BY dispatched_at LIMIT %(limit)s)
)
SELECT w.job_id, w.saga_id, w.subscription_id, w.slow, e.webhook_id, e.traceparent
  FROM waiting w
  JOIN webhook_delivery_sagas s ON s.id = w.saga_id
  JOIN events e ON e.id = s.event_id;

-- name: mark_dispatched
WITH sent AS MATERIALIZED (
    SELECT id FROM webhook_delivery_jobs
     WHERE id = ANY (%(job_ids)s::bigint[]) AND status::text = 'Pending' ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE webhook_delivery_jobs j SET dispatched_at = clock_timestamp() FROM sent WHERE j.id = sent.id RETURNING j.id;

-- name: flow_to_start
-- Flow and settings of the named subscriptions, and of those whose wake_at has come, and when the first of their waiting
-- sagas is or was due. Without locks: what is decided from a row is done only while the row's version is the same.
SELECT
       -- insert: flow_and_settings
       , (SELECT g.next_attempt_at
          -- insert: waiting_sagas
             AND g.subscription_id = s.id AND num_nonnulls(g.ordering_key) = 0
           ORDER BY g.next_attempt_at, g.id LIMIT 1) AS oldest_at,
       (SELECT g.next_attempt_at
          -- insert: waiting_sagas
             AND g.subscription_id = s.id AND num_nonnulls(g.ordering_key) = 1
           ORDER BY g.next_attempt_at, g.id LIMIT 1) AS oldest_ordered_at,
       now() AS now
  FROM (SELECT unnest(%(subscription_ids)s::bigint[]) AS id
        UNION
        SELECT subscription_id FROM (SELECT subscription_id FROM subscription_flow WHERE wake_at <= now()
                                      ORDER BY wake_at LIMIT %(most_woken)s) AS woken) AS wanted
  JOIN subscription_flow f ON f.subscription_id = wanted.id
  JOIN subscriptions s ON s.id = f.subscription_id
 ORDER BY f.subscription_id;

-- part: room_and_plain
WITH free AS MATERIALIZED (
    SELECT locked.*, greatest(0, least(starts, most_in_flight - in_flight)) AS size
      FROM (SELECT r.*, in_progress(r.subscription_id, r.most_in_flight) AS in_flight
              FROM (SELECT r.*
                      FROM unnest(%(subscription_ids)s::bigint[], %(versions)s::bigint[], %(in_flight)s::int[],
                                  %(starts)s::int[], %(probes)s::boolean[], %(tokens)s::float8[], %(slow)s::boolean[],
                                  %(max_attempts)s::int[], %(has_ordered)s::boolean[], %(cursors)s::text[])
                           AS r (subscription_id, version, most_in_flight, starts, probe, tokens, slow, max_attempts,
                                 has_ordered, cursor)
                      JOIN subscription_flow f ON f.subscription_id = r.subscription_id AND f.version = r.version
                     ORDER BY r.subscription_id FOR NO KEY UPDATE OF f SKIP LOCKED) AS r) AS locked
), plain AS MATERIALIZED (
    SELECT f.*, ARRAY(
               SELECT g.id FROM (
                   SELECT g.id, g.attempt_count, g.next_attempt_at
                   -- insert: waiting_sagas
                      AND g.subscription_id = f.subscription_id AND num_nonnulls(g.ordering_key) = 0
                      AND g.next_attempt_at <= statement_timestamp()
                      AND (%(only)s::bigint IS NULL OR g.id = %(only)s::bigint)
                    ORDER BY g.next_attempt_at, g.id LIMIT CASE WHEN f.probe AND f.size > 0 THEN 100 ELSE f.size END
                      FOR NO KEY UPDATE SKIP LOCKED) AS g
                ORDER BY CASE WHEN f.probe THEN g.attempt_count END, g.next_attempt_at, g.id LIMIT f.size) AS ids
      FROM free f

-- part: moved_and_jobs
), moved AS (
    UPDATE webhook_delivery_sagas s
       SET status = 'InProgress', updated_at = clock_timestamp()
      FROM chosen c
     WHERE s.id = c.id AND s.status::text IN ('Pending', 'PendingRetry') AND s.attempt_count < c.max_attempts
    RETURNING s.id, s.subscription_id, s.attempt_count, s.next_attempt_at, c.max_attempts, c.slow
), jobs AS (
    INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, max_attempts, slow)
    SELECT id, subscription_id, attempt_count + 1, next_attempt_at, max_attempts, slow
      FROM moved ORDER BY next_attempt_at, id
    RETURNING id, saga_id, subscription_id, slow
), taken AS (
    SELECT saga_id, max(job_id) AS job_id, bool_or(slow) AS slow
      FROM (SELECT saga_id, id AS job_id, slow FROM jobs UNION ALL SELECT id, NULL, slow FROM chosen) AS either
     GROUP BY saga_id

-- part: debited
), debited AS (
    UPDATE subscription_flow f
       SET version = f.version + 1, tokens = b.tokens - b.started,
           tokens_at = CASE WHEN b.tokens IS NOT NULL THEN %(tokens_at)s::timestamptz END,
           probe_saga_id = CASE WHEN b.probe THEN b.first ELSE f.probe_saga_id END
      FROM (SELECT subscription_id, max(tokens) AS tokens, bool_or(probe) AS probe, count(saga_id) AS started,
                   min(saga_id) AS first
              FROM (SELECT subscription_id, NULL::float8 AS tokens, NULL::boolean AS probe, saga_id FROM jobs
                    UNION ALL
                    SELECT subscription_id, tokens, probe, NULL FROM free) AS either
             GROUP BY subscription_id HAVING (max(tokens) IS NOT NULL OR bool_or(probe)) AND count(saga_id) > 0) AS b
     WHERE f.subscription_id = b.subscription_id

-- part: left_of_plain
    SELECT f.subscription_id, f.in_flight, f.size,
           (SELECT count(*)::int FROM (
                SELECT
                  -- insert: waiting_sagas
                   AND g.subscription_id = f.subscription_id AND num_nonnulls(g.ordering_key) = 0
                   AND g.next_attempt_at <= statement_timestamp()
                 LIMIT f.size + 1) AS counted) AS due,
           (SELECT g.next_attempt_at
            -- insert: waiting_sagas
               AND g.subscription_id = f.subscription_id AND num_nonnulls(g.ordering_key) = 0
               AND g.next_attempt_at > statement_timestamp()
             ORDER BY g.next_attempt_at, g.id LIMIT 1) AS next_due_at,
           0 AS blocked, NULL::text AS last_key, false AS is_cut
      FROM free f

-- part: started_and_left
)
SELECT s.subscription_id, s.id AS saga_id, x.job_id, x.slow, s.status::text AS previous_status,
       s.attempt_count, s.next_attempt_at, s.final_error_code, e.webhook_id, e.traceparent,
       NULL::int AS in_flight, NULL::int AS size, NULL::int AS due, NULL::int AS ordered_blocked,
       NULL::timestamptz AS next_due_at, NULL::text AS order_cursor, false AS order_is_cut
  FROM taken x
  JOIN webhook_delivery_sagas s ON s.id = x.saga_id
  JOIN events e ON e.id = s.event_id
UNION ALL
SELECT subscription_id, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, max(in_flight), max(size),
       max(due), sum(blocked)::int, min(next_due_at), max(last_key), bool_or(is_cut)
  FROM left_over GROUP BY subscription_id

-- name: start_due
-- Starts attempts into the given room of each subscription, oldest due first, if its flow row still has the version that
-- the room was computed from; what another orchestrator has locked is left to it. in_progress counts after the lock: it
-- is VOLATILE, so it sees what was committed until then, and room is never taken twice. A saga that another session has
-- locked is skipped. A probe is the one with the fewest attempts of the oldest 100.
-- attempt_at is the next_attempt_at that caused the job, so a second job for one attempt collides. A saga whose limit
-- was lowered below its attempts is returned without a job, to be ended by dead_letter_waiting. The rows without a
-- saga_id say of each subscription what is left. Steps are combined by grouping: a join of two of them would compare
-- every row with every row.
-- insert: room_and_plain
), chosen AS MATERIALIZED (
    SELECT unnest(ids) AS id, max_attempts, slow FROM plain
-- insert: moved_and_jobs
), left_over AS (
-- insert: left_of_plain
-- insert: started_and_left
;

-- name: start_due_with_rules
-- The same where some of the subscriptions have ordered sagas, a rate limit or an open circuit breaker: a statement of
-- its own, because each step costs its beginning and end, used or not. Of ordered sagas only the first of each ordering
-- key that has not ended may start: the recursive part steps from key to key on the index, from the one after the cursor
-- on, and once around. Tokens and the probe are written by the statement that takes them.
-- insert: room_and_plain
), heads AS MATERIALIZED (
    SELECT f.subscription_id, f.max_attempts, f.slow, h.*
      FROM plain f CROSS JOIN LATERAL (
          WITH RECURSIVE head AS (
              SELECT NULL::bigint AS id, f.cursor AS ordering_key, NULL::text AS status,
                     NULL::timestamptz AS next_attempt_at, 0 AS nth, false AS may_start, false AS is_second_lap,
                     f.size - cardinality(f.ids) AS size
               WHERE f.has_ordered AND %(only)s::bigint IS NULL
              UNION ALL
              SELECT next.id, next.ordering_key::text, next.status::text, next.next_attempt_at, h.nth + 1,
                     next.status <> 'InProgress' AND next.next_attempt_at <= statement_timestamp()
                         AND NOT earlier_event_waits(f.subscription_id, next.event_id, next.ordering_key),
                     next.is_second_lap, h.size - CASE WHEN h.may_start THEN 1 ELSE 0 END
                FROM head h CROSS JOIN LATERAL (
                    SELECT either.* FROM (
                        (SELECT g.id, g.ordering_key, g.status, g.next_attempt_at, g.event_id, h.is_second_lap
                           FROM webhook_delivery_sagas g
                          WHERE g.subscription_id = f.subscription_id AND g.ordering_key > h.ordering_key
                            AND g.ordering_key IS NOT NULL AND g.status IN ('Pending', 'InProgress', 'PendingRetry')
                          ORDER BY g.ordering_key, g.event_id LIMIT 1)
                        UNION ALL
                        (SELECT g.id, g.ordering_key, g.status, g.next_attempt_at, g.event_id, true
                           FROM webhook_delivery_sagas g
                          WHERE NOT h.is_second_lap AND g.subscription_id = f.subscription_id
                            AND g.ordering_key <= f.cursor
                            AND g.ordering_key IS NOT NULL AND g.status IN ('Pending', 'InProgress', 'PendingRetry')
                          ORDER BY g.ordering_key, g.event_id LIMIT 1)) AS either
                     WHERE NOT h.is_second_lap OR either.ordering_key <= f.cursor
                     ORDER BY either.is_second_lap LIMIT 1) AS next
               WHERE h.size > CASE WHEN h.may_start THEN 1 ELSE 0 END AND h.nth < %(most_keys)s
          )
          SELECT * FROM head WHERE nth > 0) AS h
), first_of_keys AS MATERIALIZED (
    SELECT g.id, h.max_attempts, h.slow
      FROM heads h JOIN webhook_delivery_sagas g ON g.id = h.id AND g.status::text IN ('Pending', 'PendingRetry')
     WHERE h.may_start
     ORDER BY g.id FOR NO KEY UPDATE OF g SKIP LOCKED
), named_first AS MATERIALIZED (
    SELECT g.id, f.max_attempts, f.slow
      FROM free f JOIN webhook_delivery_sagas g ON g.id = %(only)s::bigint AND g.subscription_id = f.subscription_id
     WHERE f.has_ordered AND f.size > 0
       AND g.status::text IN ('Pending', 'PendingRetry') AND g.next_attempt_at <= statement_timestamp()
       AND NOT earlier_event_waits(g.subscription_id, g.event_id, g.ordering_key)
       AND g.id = (SELECT o.id FROM webhook_delivery_sagas o
                    WHERE o.subscription_id = g.subscription_id AND o.ordering_key = g.ordering_key
                      AND o.ordering_key IS NOT NULL AND o.status IN ('Pending', 'InProgress', 'PendingRetry')
                    ORDER BY o.ordering_key, o.event_id LIMIT 1)
       FOR NO KEY UPDATE OF g SKIP LOCKED
), chosen AS MATERIALIZED (
    SELECT unnest(ids) AS id, max_attempts, slow FROM plain
    UNION ALL
    SELECT id, max_attempts, slow FROM first_of_keys
    UNION ALL
    SELECT id, max_attempts, slow FROM named_first
-- insert: moved_and_jobs
-- insert: debited
), left_over AS (
-- insert: left_of_plain
    UNION ALL
    SELECT h.subscription_id, NULL, NULL, NULL,
           CASE WHEN h.status <> 'InProgress' AND h.next_attempt_at > statement_timestamp() THEN h.next_attempt_at END,
           CASE WHEN h.status <> 'InProgress' AND h.next_attempt_at <= statement_timestamp() AND NOT h.may_start
                THEN 1 ELSE 0 END,
           CASE WHEN h.nth = %(most_keys)s OR h.may_start AND h.size = 1 THEN h.ordering_key END,
           h.nth = %(most_keys)s
      FROM heads h
-- insert: started_and_left
;

-- name: lock_flow
-- Locks the flow rows that still have the version that was read, and no other session has locked.
SELECT f.subscription_id
  FROM unnest(%(subscription_ids)s::bigint[], %(versions)s::bigint[]) AS u (subscription_id, version)
  JOIN subscription_flow f ON f.subscription_id = u.subscription_id AND f.version = u.version
 ORDER BY f.subscription_id FOR NO KEY UPDATE OF f SKIP LOCKED;

-- name: end_waiting
-- The waiting sagas of each subscription that end without another attempt: those due before a moment, up to an id.
SELECT u.cause,
       -- insert: facts_of_saga
  FROM unnest(%(subscription_ids)s::bigint[], %(due_before)s::timestamptz[], %(through)s::bigint[], %(causes)s::text[])
       AS u (subscription_id, due_before, through, cause)
 CROSS JOIN (VALUES (0), (1)) AS kind (is_ordered)
 CROSS JOIN LATERAL (
      SELECT *
      -- insert: waiting_sagas
         AND g.subscription_id = u.subscription_id AND num_nonnulls(g.ordering_key) = kind.is_ordered
         AND g.next_attempt_at <= u.due_before AND g.id <= u.through
         AND (%(only)s::bigint IS NULL OR g.id = %(only)s::bigint)
       ORDER BY g.next_attempt_at, g.id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED) AS s
  -- insert: event_and_subscription
 ORDER BY s.next_attempt_at, s.id;

-- name: write_flow
-- Writes each flow if the row is still as it was when the flow was computed. What another session has locked is left out.
WITH flow AS MATERIALIZED (
    SELECT w.* FROM unnest(
       -- insert: flow_arrays
      JOIN subscription_flow f ON f.subscription_id = w.subscription_id AND f.version = w.version
     ORDER BY f.subscription_id FOR NO KEY UPDATE OF f SKIP LOCKED
)
UPDATE subscription_flow f
   SET version = f.version + 1,
       -- insert: flow_of_w
  FROM flow w WHERE f.subscription_id = w.subscription_id
RETURNING f.subscription_id;

-- name: waiting_subscriptions
-- Subscriptions with waiting sagas, by id, after the given one: what every message has lost. is_closed: pause,
-- Retry-After or an open circuit breaker closes it, and what ends that wakes it.
WITH RECURSIVE waiting (subscription_id, nth) AS (
    (SELECT g.subscription_id, 1
     -- insert: waiting_sagas
        AND g.subscription_id > %(after)s
      ORDER BY g.subscription_id LIMIT 1)
    UNION ALL
    SELECT next.subscription_id, w.nth + 1
      FROM waiting w CROSS JOIN LATERAL (
          SELECT g.subscription_id
          -- insert: waiting_sagas
             AND g.subscription_id > w.subscription_id
           ORDER BY g.subscription_id LIMIT 1) AS next
     WHERE w.nth < %(limit)s
)
SELECT w.subscription_id,
       (SELECT s.active AND s.verified AND s.deleted_at IS NULL AND f.discard_through = 0
               AND (s.paused_at IS NOT NULL
                    OR f.wake_at > now() AND (f.retry_after_until > now() OR s.circuit_breaker AND f.probe_at > now()))
          FROM subscription_flow f JOIN subscriptions s ON s.id = f.subscription_id
         WHERE f.subscription_id = w.subscription_id) IS TRUE AS is_closed
  FROM waiting w;

-- name: next_wake
-- Seconds until the first subscription is to be looked at; null when none is.
SELECT extract(epoch FROM (SELECT wake_at FROM subscription_flow WHERE wake_at IS NOT NULL
                            ORDER BY wake_at LIMIT 1) - now())::float8 AS seconds;

-- name: oldest_due
-- Seconds since the oldest saga that could start became due.
SELECT age_seconds AS seconds FROM oldest_due_saga;
