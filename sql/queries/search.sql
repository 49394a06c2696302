-- What a person may have: a whole or shortened event id, or a number of something.

-- name: events_by_id_parts
-- Events whose id lies in a range and has this end, the newest first. The end is compared among the newest `most` ids
-- of the range, on the index alone.
WITH near AS MATERIALIZED (
    SELECT webhook_id FROM (
        SELECT webhook_id FROM events WHERE webhook_id BETWEEN %(first)s::uuid AND %(last)s::uuid
         ORDER BY webhook_id DESC LIMIT %(most)s) AS newest
     WHERE right(replace(webhook_id::text, '-', ''), length(%(end)s::text)) = %(end)s::text
     LIMIT 1000
)
SELECT e.id FROM near
 CROSS JOIN LATERAL (SELECT id, tenant_id FROM events WHERE events.webhook_id = near.webhook_id LIMIT 1) AS e
 WHERE %(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s
 ORDER BY near.webhook_id DESC LIMIT %(limit)s;

-- name: events_of_tenant_by_end
-- The same for an end alone, among the newest events of one tenant.
SELECT newest.id FROM (
    SELECT id, webhook_id, created_at FROM events WHERE tenant_id = %(tenant_id)s
     ORDER BY created_at DESC LIMIT %(most)s) AS newest
 WHERE right(replace(newest.webhook_id::text, '-', ''), length(%(end)s::text)) = %(end)s::text
 ORDER BY newest.created_at DESC LIMIT %(limit)s;

-- name: things_by_number
-- A subscription, a saga, a dead letter and an attempt with this id.
SELECT 'subscription' AS kind, id, NULL::uuid AS webhook_id, tenant_id, callback_url AS label, created_at AS at
  FROM subscriptions
 WHERE id = %(number)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
UNION ALL
SELECT 'saga', g.id, e.webhook_id, e.tenant_id, e.event_type, g.created_at
  FROM webhook_delivery_sagas g JOIN events e ON e.id = g.event_id
 WHERE g.id = %(number)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
UNION ALL
SELECT 'dead_letter', id, NULL, tenant_id, event_type, failed_at
  FROM dead_letters WHERE id = %(number)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
UNION ALL
SELECT 'attempt', j.id, e.webhook_id, e.tenant_id, e.event_type, j.attempt_at
  FROM webhook_delivery_jobs j
  JOIN webhook_delivery_sagas g ON g.id = j.saga_id
  JOIN events e ON e.id = g.event_id
 WHERE j.id = %(number)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s);
