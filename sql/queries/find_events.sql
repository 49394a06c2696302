-- Events, newest first, page by page. A page scans positions in the order of one index, then reads the events there
-- that match; so each block has one plan, whatever the filter is, and the caller limits how much is read. A position is
-- (at, place): the time of acceptance and the id; for dead letters, which are listed by their own ids, the time and id
-- of these. `counts` is false where another position of the same event stands for it. OFFSET 0 changes no result: it
-- keeps the planner from reading a whole table into a hash instead of its index for each event.

-- part: page
   AND (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::bigint)
   AND created_at >= greatest(%(after)s::timestamptz, now() - %(within)s::interval)
 ORDER BY created_at DESC, id DESC LIMIT %(limit)s;

-- name: scan_events
SELECT id AS event_id, created_at AS at, id AS place, true AS counts FROM events
 WHERE true
   -- insert: page

-- name: scan_events_of_type
SELECT id AS event_id, created_at AS at, id AS place, true AS counts FROM events
 WHERE event_type = %(event_type)s
   -- insert: page

-- name: scan_events_of_tenant
SELECT id AS event_id, created_at AS at, id AS place, true AS counts FROM events
 WHERE tenant_id = %(tenant_id)s
   -- insert: page

-- name: scan_key
-- Events with this idempotency key: one per tenant and source at most.
SELECT id AS event_id, created_at AS at, id AS place, true AS counts FROM events
 WHERE external_id = %(idempotency_key)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
   -- insert: page

-- name: count_open_work
-- Events that are not routed and deliveries that have not ended, each kind counted up to `most`.
SELECT (SELECT count(*) FROM (SELECT FROM routing_outbox ORDER BY event_id LIMIT %(most)s) AS counted) AS unrouted,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')
                               ORDER BY subscription_id LIMIT %(most)s) AS counted) AS waiting,
       (SELECT count(*) FROM (SELECT FROM webhook_delivery_sagas WHERE status = 'InProgress'
                               ORDER BY subscription_id LIMIT %(most)s) AS counted) AS in_progress;

-- name: scan_open_work
-- All events that wait, where these are few.
SELECT e.id AS event_id, e.created_at AS at, e.id AS place, true AS counts
  FROM (SELECT DISTINCT event_id FROM (
           (SELECT event_id FROM routing_outbox ORDER BY event_id LIMIT %(most)s)
           UNION ALL
           (SELECT event_id FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')
             ORDER BY subscription_id LIMIT %(most)s)
           UNION ALL
           (SELECT event_id FROM webhook_delivery_sagas WHERE status = 'InProgress'
             ORDER BY subscription_id LIMIT %(most)s)
       ) AS work) AS waiting
 CROSS JOIN LATERAL (SELECT id, created_at FROM events WHERE events.id = waiting.event_id LIMIT 1) AS e
 WHERE (e.created_at, e.id) < (%(before_at)s::timestamptz, %(before_id)s::bigint)
   AND e.created_at >= %(after)s::timestamptz
 ORDER BY e.created_at DESC, e.id DESC LIMIT %(limit)s;

-- name: scan_dead
-- Dead letters, newest first. The newest one of an event that was not requeued stands for the event.
SELECT d.event_id, d.failed_at AS at, d.id AS place,
       NOT EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.requeued_from = d.id OFFSET 0)
       AND NOT EXISTS (SELECT FROM dead_letters n WHERE n.event_id = d.event_id AND n.id > d.id
                          AND NOT EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.requeued_from = n.id OFFSET 0)
                        OFFSET 0) AS counts
  FROM (SELECT id, event_id, failed_at FROM dead_letters
         WHERE (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
           AND (%(event_type)s::text IS NULL OR event_type = %(event_type)s)
           AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
           AND (%(after_id)s::bigint IS NULL OR id > %(after_id)s)
         ORDER BY id DESC LIMIT %(limit)s) AS d
 ORDER BY d.id DESC;

-- name: events_with_attribute
SELECT DISTINCT id FROM events_with_attribute(%(attribute)s::text, %(values)s::jsonb[], %(most)s::int) AS id;

-- name: scan_chosen
-- The named events.
SELECT e.id AS event_id, e.created_at AS at, e.id AS place, true AS counts
  FROM unnest(%(chosen)s::bigint[]) AS chosen (id)
 CROSS JOIN LATERAL (SELECT id, created_at, tenant_id FROM events WHERE events.id = chosen.id LIMIT 1) AS e
 WHERE (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
   AND (e.created_at, e.id) < (%(before_at)s::timestamptz, %(before_id)s::bigint)
   AND e.created_at >= %(after)s::timestamptz
 ORDER BY e.created_at DESC, e.id DESC LIMIT %(limit)s;

-- part: waits
(EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id OFFSET 0)
        OR EXISTS (SELECT FROM webhook_delivery_sagas w
                    WHERE w.event_id = e.id AND w.status IN ('Pending', 'InProgress', 'PendingRetry')
                    OFFSET 0))

-- part: is_dead
EXISTS (SELECT FROM dead_letters d
                 WHERE d.event_id = e.id
                   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.requeued_from = d.id OFFSET 0)
                 OFFSET 0)

-- name: events_by_id
-- Events among the named ones that match the filter, each with its first hundred deliveries by state.
SELECT e.id, e.webhook_id, e.tenant_id, e.event_type, e.external_id AS idempotency_key, e.ordering_key,
       e.test_subscription_id, attributes_of_event(e.attributes, e.extracted_attributes) AS attributes, e.created_at,
       NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id OFFSET 0) AS routed,
       g.deliveries, g.completed, g.dead, g.open
  FROM events e
 CROSS JOIN LATERAL (
    SELECT count(*) AS deliveries, count(*) FILTER (WHERE f.status = 'Completed') AS completed,
           count(*) FILTER (WHERE f.status = 'DeadLettered') AS dead,
           count(*) FILTER (WHERE f.status IN ('Pending', 'InProgress', 'PendingRetry')) AS open
      FROM (SELECT w.status FROM webhook_delivery_sagas w WHERE w.event_id = e.id LIMIT 100) AS f) AS g
 WHERE e.id = ANY (%(ids)s::bigint[])
   AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
   AND (%(event_type)s::text IS NULL OR e.event_type = %(event_type)s)
   AND (%(idempotency_key)s::text IS NULL OR e.external_id = %(idempotency_key)s)
   AND (%(accepted_after)s::timestamptz IS NULL OR e.created_at >= %(accepted_after)s)
   AND (%(accepted_before)s::timestamptz IS NULL OR e.created_at < %(accepted_before)s)
   AND (%(attribute)s::text IS NULL OR attributes_of_event(e.attributes, e.extracted_attributes) -> %(attribute)s = ANY (%(values)s::jsonb[]))
   AND (%(status)s::text IS NULL OR CASE %(status)s::text
        WHEN 'waiting' THEN
        -- insert: waits
        WHEN 'dead' THEN
        -- insert: is_dead
        WHEN 'none' THEN NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id OFFSET 0)
        AND NOT EXISTS (SELECT FROM webhook_delivery_sagas w WHERE w.event_id = e.id OFFSET 0)
        ELSE EXISTS (SELECT FROM webhook_delivery_sagas w WHERE w.event_id = e.id OFFSET 0) AND NOT
        -- insert: waits
        AND NOT
        -- insert: is_dead
        END);

-- name: event_ids
SELECT id, webhook_id FROM events WHERE webhook_id = ANY (%(webhook_ids)s::uuid[]);
