-- Each block checks one invariant; each row violates it. The only exception is deletion by
-- retention: `retention_state` says up to which time rows may have been deleted.

-- name: event_neither_waiting_nor_routed
-- An event that left the outbox has the decision of its last part, which has no upper end.
SELECT e.id AS event_id
  FROM events e
 WHERE NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id)
   AND NOT EXISTS (SELECT FROM routing_decisions d WHERE d.event_id = e.id AND d.through_subscription IS NULL)
 LIMIT %(limit)s;

-- name: matching_subscription_without_saga
-- The routing of the event saw the subscription as eligible, whatever happened to it later, and started no saga. That
-- is correct only for an event accepted before the subscription became eligible and routed after. The audit does not
-- rely on the router's comparison (accepted_after) alone: such an event waited in the outbox when the subscription
-- changed, and the history lists those events one by one, unless they were too many. Before the horizon a saga may have
-- been completed and pruned, unless the routing started none.
WITH had AS MATERIALIZED (
    SELECT DISTINCT tenant_id, unnest(event_types) AS pattern, subscription_id
      FROM subscription_history WHERE active AND verified AND deleted_at IS NULL
), of_type AS MATERIALIZED (
    SELECT tenant_id, event_type, unnest(patterns_of_type(event_type)) AS pattern
      FROM (SELECT DISTINCT tenant_id, event_type FROM events) AS accepted
), kind AS MATERIALIZED (
    SELECT DISTINCT tenant_id, event_type, subscription_id FROM had JOIN of_type USING (tenant_id, pattern)
), pair AS MATERIALIZED (
    SELECT e.id AS event_id, e.event_type, e.accepted_by, e.created_at, e.test_subscription_id, k.subscription_id,
           attributes_of_event(e.attributes, e.extracted_attributes) AS attributes,
           num_nonnulls(e.erasure_id) = 1 AS erased
      FROM events e
      JOIN kind k ON k.tenant_id = e.tenant_id AND k.event_type = e.event_type
       AND k.subscription_id = coalesce(e.test_subscription_id, k.subscription_id)
      LEFT JOIN webhook_delivery_sagas g ON g.event_id = e.id AND g.subscription_id = k.subscription_id
     WHERE g.id IS NULL
)
SELECT p.event_id, p.subscription_id
  FROM pair p
 CROSS JOIN LATERAL (
      SELECT d.newest_change, d.snapshot FROM routing_decisions d
       WHERE d.event_id = p.event_id AND coalesce(d.after_subscription, 0) < p.subscription_id
         AND (d.through_subscription IS NULL OR p.subscription_id <= d.through_subscription)
       ORDER BY d.newest_change, pg_snapshot_xmax(d.snapshot) LIMIT 1) AS d
 CROSS JOIN LATERAL (
      SELECT h.* FROM subscription_history h
       WHERE h.subscription_id = p.subscription_id
         AND change_was_seen(h.id, h.changed_by, h.changed_in, d.newest_change, d.snapshot)
       ORDER BY h.id DESC LIMIT 1) AS seen
 WHERE seen.active AND seen.verified AND seen.deleted_at IS NULL AND seen.event_types && patterns_of_type(p.event_type)
   AND (p.test_subscription_id IS NOT NULL OR filter_matches(seen.filter_path, compared_attributes(p.attributes)))
   AND (seen.filter_path IS NULL OR NOT p.erased)  -- what its filter saw is gone
   AND (seen.eligible_after_event IS NULL OR p.event_id <> ALL (seen.waiting_events)
        OR accepted_after(p.event_id, p.accepted_by, seen.eligible_after_event, seen.eligible_snapshot))
   AND NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = p.event_id)
   AND NOT EXISTS (SELECT FROM retention_state r WHERE p.created_at < r.horizon
                      AND (SELECT sum(d.sagas_started) FROM routing_decisions d WHERE d.event_id = p.event_id)
                          IS DISTINCT FROM 0)
 LIMIT %(limit)s;

-- name: routing_index_wrong
-- The rows that routing reads are the event types of the eligible subscriptions, with the same facts.
SELECT coalesce(p.subscription_id, s.id) AS subscription_id, coalesce(p.pattern, s.pattern) AS pattern
  FROM subscription_patterns p
  FULL JOIN (SELECT id, tenant_id, unnest(event_types) AS pattern, eligible_after_event, ordered,
                    filter IS NOT NULL AS filtered
               FROM subscriptions WHERE active AND verified AND deleted_at IS NULL) AS s
    ON s.id = p.subscription_id AND s.pattern = p.pattern AND s.tenant_id = p.tenant_id
 WHERE (s.eligible_after_event, s.ordered, s.filtered) IS DISTINCT FROM (p.eligible_after_event, p.ordered, p.filtered)
 LIMIT %(limit)s;

-- name: row_that_names_what_is_not_there
-- Triggers check these references without the lock that a foreign key would take; a restore does not check them. An event
-- that retention deleted has left nothing behind: so what refers to a missing event has lost it.
(SELECT 'webhook_delivery_sagas' AS table_name, g.id FROM webhook_delivery_sagas g
  WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = g.event_id)
     OR NOT EXISTS (SELECT FROM subscriptions s WHERE s.id = g.subscription_id)
     OR g.requeued_from IS NOT NULL AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.id = g.requeued_from)
  LIMIT %(limit)s)
UNION ALL
(SELECT 'dead_letters', d.id FROM dead_letters d
  WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = d.event_id)
     OR NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.id = d.saga_id)
  LIMIT %(limit)s)
UNION ALL
(SELECT 'routing_decisions', d.event_id FROM routing_decisions d
  WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = d.event_id)
  LIMIT %(limit)s)
UNION ALL
(SELECT 'bulk_operation_lanes', l.operation_id FROM bulk_operation_lanes l
  WHERE NOT EXISTS (SELECT FROM subscriptions s WHERE s.id = l.subscription_id)
  LIMIT %(limit)s);

-- name: pair_with_two_first_sagas
SELECT event_id, subscription_id, count(*) AS sagas FROM webhook_delivery_sagas
 WHERE requeued_from IS NULL AND resent_from IS NULL GROUP BY event_id, subscription_id HAVING count(*) > 1 LIMIT %(limit)s;

-- name: saga_with_wrong_active_jobs
-- InProgress: exactly one job that is active or whose result is to be applied. Any other state: none.
SELECT s.id AS saga_id, s.status::text, count(j.id) AS open_jobs
  FROM webhook_delivery_sagas s
  LEFT JOIN webhook_delivery_jobs j ON j.saga_id = s.id
   AND (j.status IN ('Pending', 'Leased') OR s.status = 'InProgress' AND j.attempt_at = s.next_attempt_at)
 GROUP BY s.id
HAVING count(j.id) <> CASE WHEN s.status = 'InProgress' THEN 1 ELSE 0 END
 LIMIT %(limit)s;

-- name: attempt_count_is_not_the_applied_jobs
-- When a saga stays after its jobs were pruned, all of its jobs are deleted: it has all or none.
-- A failed probe never uses up the last attempt: the next attempt has its number again, and a failed attempt that is the
-- last so far may be such a probe.
SELECT s.id AS saga_id, s.attempt_count, count(j.id) AS applied_jobs
  FROM webhook_delivery_sagas s
  LEFT JOIN (SELECT o.saga_id, o.id, o.status = 'Failed' AS failed, o.attempt_number,
                    lead(o.attempt_number) OVER w AS next_number
               FROM webhook_delivery_jobs o JOIN webhook_delivery_sagas g ON g.id = o.saga_id
              WHERE o.status IN ('Completed', 'Failed')
                AND NOT (g.status = 'InProgress' AND o.attempt_at = g.next_attempt_at)
             WINDOW w AS (PARTITION BY o.saga_id ORDER BY o.id)) AS j
    ON j.saga_id = s.id
 GROUP BY s.id
HAVING s.attempt_count <> count(j.id) FILTER (
           WHERE NOT j.failed
              OR coalesce(j.next_number <> j.attempt_number, s.attempt_count >= j.attempt_number OR s.status = 'Completed'))
   AND NOT (count(j.id) = 0
            AND (s.status = 'DeadLettered' OR s.status = 'Completed' AND s.requeued_from IS NOT NULL)
            AND EXISTS (SELECT FROM retention_state r WHERE s.updated_at < r.horizon))
 LIMIT %(limit)s;

-- name: attempt_count_over_any_limit
SELECT id AS saga_id, attempt_count FROM webhook_delivery_sagas WHERE attempt_count > 50 LIMIT %(limit)s;

-- name: dead_saga_without_its_dead_letter
SELECT s.id AS saga_id FROM webhook_delivery_sagas s
 WHERE s.status = 'DeadLettered'
   AND NOT EXISTS (SELECT FROM dead_letters d WHERE d.saga_id = s.id) LIMIT %(limit)s;

-- name: dead_letter_untrue
-- The saga of a dead letter is DeadLettered, and the dead letter holds its pair and payload byte for byte; or none, when
-- the payload of its event was removed.
SELECT d.id AS dead_letter_id, d.saga_id
  FROM dead_letters d
  JOIN webhook_delivery_sagas s ON s.id = d.saga_id
  JOIN events e ON e.id = d.event_id
 WHERE s.status <> 'DeadLettered' OR s.event_id <> d.event_id OR s.subscription_id <> d.subscription_id
    OR e.payload::text IS DISTINCT FROM d.payload_snapshot::text
 LIMIT %(limit)s;

-- name: completed_saga_without_one_last_completed_job
-- A requeued saga stays when all of its jobs are pruned; any other saga is deleted together with its jobs.
SELECT s.id AS saga_id
  FROM webhook_delivery_sagas s
 WHERE s.status = 'Completed'
   AND NOT (SELECT coalesce(bool_and(j.status = CASE WHEN j.is_last THEN 'Completed' ELSE 'Failed' END::job_status),
                            s.attempt_count = 0)
              FROM (SELECT status, row_number() OVER (ORDER BY id DESC) = 1 AS is_last
                      FROM webhook_delivery_jobs WHERE saga_id = s.id) AS j)
   AND NOT (s.requeued_from IS NOT NULL
            AND NOT EXISTS (SELECT FROM webhook_delivery_jobs j WHERE j.saga_id = s.id)
            AND EXISTS (SELECT FROM retention_state r WHERE s.updated_at < r.horizon))
 LIMIT %(limit)s;

-- name: saga_waits_too_long
-- Checked while the pipeline is at work: sagas due before its start get the same time from the start. A start in the
-- future was noted while the clock was wrong, and excuses nothing. A subscription without room is left out.
SELECT s.id AS saga_id, s.status::text, s.next_attempt_at
  FROM work_state w JOIN oldest_due_by_subscription s
    ON s.next_attempt_at < now() - interval '3 minutes'
   AND w.at_work_since NOT BETWEEN now() - interval '3 minutes' AND now()
 LIMIT %(limit)s;

-- name: lease_over_too_long
SELECT j.id AS job_id, j.lease_until
  FROM work_state w JOIN webhook_delivery_jobs j
    ON j.lease_until < now() - interval '3 minutes'
   AND w.at_work_since NOT BETWEEN now() - interval '3 minutes' AND now()
 WHERE j.status = 'Leased' LIMIT %(limit)s;

-- name: requeued_saga_with_another_pair
SELECT s.id AS saga_id, s.requeued_from
  FROM webhook_delivery_sagas s JOIN dead_letters d ON d.id = s.requeued_from
 WHERE (s.event_id, s.subscription_id) <> (d.event_id, d.subscription_id) LIMIT %(limit)s;

-- name: resent_saga_with_another_pair
-- An origin that retention has deleted proves nothing. A requeue is checked by its dead letter.
SELECT s.id AS saga_id, s.resent_from
  FROM webhook_delivery_sagas s JOIN webhook_delivery_sagas o ON o.id = s.resent_from
 WHERE s.requeued_from IS NULL
   AND ((s.event_id, s.subscription_id) <> (o.event_id, o.subscription_id)
        OR o.status NOT IN ('Completed', 'DeadLettered')) LIMIT %(limit)s;

-- name: bulk_operation_counts_wrong
-- done equals the operation's sagas, unless it is so old that retention may have deleted some; in a Completed one, all
-- matches are done or skipped; and an operation is the sum of its lanes.
SELECT o.id AS operation_id, o.status::text, o.matched, o.done, o.skipped, coalesce(g.sagas, 0) AS sagas
  FROM bulk_operations o
  LEFT JOIN (SELECT bulk_operation_id, count(*) AS sagas FROM webhook_delivery_sagas
              WHERE bulk_operation_id IS NOT NULL GROUP BY bulk_operation_id) AS g ON g.bulk_operation_id = o.id
  LEFT JOIN (SELECT operation_id, sum(done) AS done, sum(skipped) AS skipped, bool_and(finished) AS finished
               FROM bulk_operation_lanes GROUP BY operation_id) AS l ON l.operation_id = o.id
 WHERE coalesce(g.sagas, 0) > o.done OR coalesce(g.sagas, 0) < o.done
       AND NOT EXISTS (SELECT FROM retention_state r WHERE o.created_at < r.horizon)
    OR (coalesce(l.done, 0), coalesce(l.skipped, 0)) <> (o.done, o.skipped)
    OR o.status = 'Completed' AND (o.matched <> o.done + o.skipped OR NOT coalesce(l.finished, true))
 LIMIT %(limit)s;

-- name: bulk_saga_beyond_its_operation
-- A saga that an operation started has its kind and tenant, and its source existed when the operation began.
SELECT g.id AS saga_id, o.id AS operation_id
  FROM webhook_delivery_sagas g
  JOIN bulk_operations o ON o.id = g.bulk_operation_id
  JOIN events e ON e.id = g.event_id
 WHERE o.tenant_id IS NOT NULL AND e.tenant_id <> o.tenant_id
    OR o.kind = 'requeue' AND g.requeued_from IS NULL
    OR o.kind = 'backfill' AND num_nonnulls(g.requeued_from, g.resent_from) > 0
    OR o.kind = 'resend' AND (g.resent_from IS NULL OR g.resent_from > o.until_id)
    OR o.kind = 'requeue' AND g.requeued_from > o.until_id
    OR o.kind = 'backfill' AND g.event_id > o.until_id
 LIMIT %(limit)s;

-- name: payload_missing_too_early
-- Retention removes payloads from before their horizon only, and when all deliveries have ended.
SELECT e.id AS event_id
  FROM events e
 WHERE e.removed_at IS NOT NULL AND e.erasure_id IS NULL
   AND (NOT EXISTS (SELECT FROM retention_state r WHERE e.created_at < r.payload_horizon)
        OR EXISTS (SELECT FROM webhook_delivery_sagas g
                    WHERE g.event_id = e.id AND g.status IN ('Pending', 'InProgress', 'PendingRetry')))
 LIMIT %(limit)s;

-- name: erased_event_with_content
-- An erased event, whose own columns a check empties, has no payload, answer or ordering key left elsewhere.
(SELECT e.id AS event_id, 'webhook_delivery_jobs' AS table_name
   FROM events e JOIN webhook_delivery_sagas g ON g.event_id = e.id JOIN webhook_delivery_jobs j ON j.saga_id = g.id
  WHERE e.erasure_id IS NOT NULL AND num_nonnulls(j.response_body, j.response_headers, j.own_header_names) > 0
  LIMIT %(limit)s)
UNION ALL
(SELECT e.id, 'webhook_delivery_sagas' FROM events e JOIN webhook_delivery_sagas g ON g.event_id = e.id
  WHERE e.erasure_id IS NOT NULL AND g.ordering_key <> ''
  LIMIT %(limit)s)
UNION ALL
(SELECT e.id, 'dead_letters' FROM events e JOIN dead_letters d ON d.event_id = e.id
  WHERE e.erasure_id IS NOT NULL AND num_nonnulls(d.payload_snapshot) = 1
  LIMIT %(limit)s);

-- name: identity_near_its_end
-- Nine tenths of the ids are used, or more. With none left, inserts fail.
SELECT c.relname::text AS table_name, pg_sequence_last_value(s.seqrelid) AS last_id, s.seqmax AS greatest_id
  FROM pg_sequence s
  JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.seqrelid AND d.deptype = 'i'
  JOIN pg_class c ON c.oid = d.refobjid
 WHERE c.relnamespace = 'public'::regnamespace AND pg_sequence_last_value(s.seqrelid) > s.seqmax / 10 * 9
 LIMIT %(limit)s;

-- name: identity_behind_its_rows
-- The next ids are already used, as after a restore without the sequence: inserts fail until the sequence has passed
-- them.
SELECT table_name, last_id, greatest_id
  FROM (SELECT 'events' AS table_name, last_value - (NOT is_called)::int AS last_id,
               (SELECT max(id) FROM events) AS greatest_id FROM events_id_seq
        UNION ALL SELECT 'event_types', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM event_types) FROM event_types_id_seq
        UNION ALL SELECT 'subscriptions', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM subscriptions) FROM subscriptions_id_seq
        UNION ALL SELECT 'subscription_secrets', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM subscription_secrets) FROM subscription_secrets_id_seq
        UNION ALL SELECT 'webhook_delivery_sagas', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM webhook_delivery_sagas) FROM webhook_delivery_sagas_id_seq
        UNION ALL SELECT 'webhook_delivery_jobs', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM webhook_delivery_jobs) FROM webhook_delivery_jobs_id_seq
        UNION ALL SELECT 'dead_letters', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM dead_letters) FROM dead_letters_id_seq
        UNION ALL SELECT 'api_keys', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM list_api_keys()) FROM api_keys_id_seq
        UNION ALL SELECT 'subscription_history', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM subscription_history) FROM subscription_history_id_seq
        UNION ALL SELECT 'bulk_operations', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM bulk_operations) FROM bulk_operations_id_seq
        UNION ALL SELECT 'erasures', last_value - (NOT is_called)::int,
               (SELECT max(id) FROM erasures) FROM erasures_id_seq) AS identities
 WHERE greatest_id > last_id
 LIMIT %(limit)s;

-- name: transaction_ids_near_their_end
-- Half of the transaction ids lie between the oldest unfrozen row and now; a tenth is usual. With none left PostgreSQL
-- accepts no writes. Something blocks vacuum.
SELECT datname::text AS database_name, age(datfrozenxid) AS transactions, mxid_age(datminmxid) AS multixacts
  FROM pg_database
 WHERE age(datfrozenxid) > 1000000000 OR mxid_age(datminmxid) > 1000000000
 LIMIT %(limit)s;

-- name: primary_that_takes_no_writes
-- A standby accepts no writes by design, and a copy may be audited.
SELECT name, setting, source FROM pg_settings
 WHERE name = 'default_transaction_read_only' AND setting = 'on' AND NOT pg_is_in_recovery()
 LIMIT %(limit)s;
