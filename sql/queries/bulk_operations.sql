-- name: start_bulk_operation
SELECT id, created FROM start_bulk_operation(%(kind)s::bulk_kind, %(tenant_id)s::varchar, %(filter)s::jsonb,
    %(rate_per_second)s::float8, %(reason)s::varchar, %(key_id)s::bigint, %(created_by)s::varchar);

-- name: count_bulk_operation
-- The dry run. It has no max(id) limit: rows added between the dry run and the start are part of the operation.
SELECT coalesce(sum(matched), 0)::bigint AS matched, count(*) AS subscriptions
  FROM count_bulk_lanes(%(kind)s::bulk_kind, %(tenant_id)s::varchar, %(filter)s::jsonb, NULL);

-- name: backfill_facts
-- Facts that decide whether a subscription may have a backfill, and of which events. If the clock was set back, the
-- newest event is the limit of times that are not in the future.
SELECT tenant_id, event_type, active AND verified AND deleted_at IS NULL AS takes,
       greatest(now(), (SELECT max(created_at) FROM events)) AS now,
       retention_horizon() AS retention_horizon
  FROM subscriptions WHERE id = %(id)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);

-- name: step_bulk_operation
SELECT operation_id, status::text, coalesce(saga_ids, '{}') AS saga_ids,
       coalesce(subscription_ids, '{}') AS subscription_ids, coalesce(delays, '{}') AS delays
  FROM step_bulk_operation(%(passed_by)s::bigint[], %(horizon_seconds)s::float8, %(max_sagas)s::int,
                           %(max_lanes)s::int, %(max_open)s::int);

-- name: next_bulk_operation
-- The operation that a step would take.
SELECT o.id FROM bulk_operations o
 WHERE o.status = 'Running' AND o.id <> ALL (%(passed_by)s::bigint[])
   AND coalesce(o.last_slot_at + ceil(1e6 / o.rate_per_second) * interval '1 microsecond', now())
       < now() + make_interval(secs => %(horizon_seconds)s)
 ORDER BY o.last_step_at NULLS FIRST, o.id LIMIT 1;

-- name: traces_of_sagas
SELECT s.id, e.webhook_id, e.traceparent
  FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
 WHERE s.id = ANY (%(saga_ids)s::bigint[]);

-- name: move_bulk_operation
SELECT move_bulk_operation(%(id)s::bigint, %(tenant_id)s::varchar, %(status)s::bulk_status)::text AS moved;

-- name: pace_bulk_operation
SELECT pace_bulk_operation(%(id)s::bigint, %(tenant_id)s::varchar, %(rate_per_second)s::float8)::text AS moved;

-- part: bulk_operation
SELECT id, kind::text, status::text, tenant_id, filter, rate_per_second, reason, created_by, created_by_key_id,
       matched, done, skipped, last_step_at, created_at, updated_at, finished_at
  FROM bulk_operations

-- name: list_bulk_operations
-- insert: bulk_operation
 WHERE (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
   AND (%(status)s::text IS NULL OR status::text = %(status)s)
   AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: show_bulk_operation
-- insert: bulk_operation
 WHERE id = %(id)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);

-- name: lanes_of_bulk_operation
-- Unfinished lanes first, the one with the most remaining work before the others.
SELECT subscription_id, matched, done, skipped, finished FROM bulk_operation_lanes
 WHERE operation_id = %(id)s
 ORDER BY finished, matched - done - skipped DESC, subscription_id LIMIT %(limit)s;
