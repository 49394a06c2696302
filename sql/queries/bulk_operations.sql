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
SELECT tenant_id, event_types, active AND verified AND deleted_at IS NULL AS takes,
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
-- Completed sagas are those that neither failed nor are under way: retention may have deleted some.
SELECT o.id, o.kind::text, o.status::text, o.tenant_id, o.filter, o.rate_per_second, o.reason, o.created_by,
       o.created_by_key_id, o.matched, o.done, o.skipped, o.done - c.failed - c.under_way AS delivered, c.failed,
       c.under_way, c.retrying, o.stop_reason, o.last_step_at, o.created_at, o.updated_at, o.finished_at
  FROM bulk_operations o
 CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE g.status = 'DeadLettered') AS failed,
             count(*) FILTER (WHERE g.status <> 'DeadLettered') AS under_way,
             count(*) FILTER (WHERE g.status = 'PendingRetry') AS retrying
        FROM webhook_delivery_sagas g
       WHERE g.bulk_operation_id = o.id
         AND g.status IN ('Pending', 'InProgress', 'PendingRetry', 'DeadLettered')) AS c

-- name: list_bulk_operations
-- insert: bulk_operation
 WHERE (%(tenant_id)s::text IS NULL OR o.tenant_id = %(tenant_id)s)
   AND (%(status)s::text IS NULL OR o.status::text = %(status)s)
   AND (%(before_id)s::bigint IS NULL OR o.id < %(before_id)s)
 ORDER BY o.id DESC LIMIT %(limit)s;

-- name: show_bulk_operation
-- insert: bulk_operation
 WHERE o.id = %(id)s AND (%(tenant_id)s::text IS NULL OR o.tenant_id = %(tenant_id)s);

-- name: lanes_of_bulk_operation
-- Unfinished lanes first, the one with the most remaining work before the others.
SELECT l.subscription_id, l.matched, l.done, l.skipped, l.done - c.failed - c.under_way AS delivered, c.failed,
       c.under_way, c.retrying, l.finished
  FROM (SELECT * FROM bulk_operation_lanes WHERE operation_id = %(id)s
         ORDER BY finished, matched - done - skipped DESC, subscription_id LIMIT %(limit)s) AS l
 CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE g.status = 'DeadLettered') AS failed,
             count(*) FILTER (WHERE g.status <> 'DeadLettered') AS under_way,
             count(*) FILTER (WHERE g.status = 'PendingRetry') AS retrying
        FROM webhook_delivery_sagas g
       WHERE g.bulk_operation_id = l.operation_id AND g.subscription_id = l.subscription_id
         AND g.status IN ('Pending', 'InProgress', 'PendingRetry', 'DeadLettered')) AS c
 ORDER BY l.finished, l.matched - l.done - l.skipped DESC, l.subscription_id;
