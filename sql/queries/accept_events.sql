-- name: insert_events
-- Returns one row per new event, and none for an event whose key already exists. Keys are inserted in order, so that
-- two batches with the same keys wait for each other instead of deadlocking. A producer's own batch is inserted as it
-- came, because ordered subscriptions deliver by event id: two such batches with the same keys in another order can
-- deadlock, and then one is run again. A revision of the catalogue that is not the current one stores nothing, and the
-- only row has the position 0; null: any will do. webhook_id is generated first: it ties each returned row to its position.
WITH input AS MATERIALIZED (
    SELECT position, uuidv7() AS webhook_id, tenant_id, event_type, source, external_id, payload, traceparent,
           ordering_key, test_subscription_id, attributes, cloud_event, extracted
      FROM unnest(%(tenant_ids)s::text[], %(event_types)s::text[], %(sources)s::text[],
                  %(external_ids)s::text[], %(payloads)s::text[], %(traceparents)s::text[],
                  %(ordering_keys)s::text[], %(test_subscription_ids)s::bigint[], %(attributes)s::text[],
                  %(cloud_events)s::text[], %(extracted)s::text[])
           WITH ORDINALITY
           AS t (tenant_id, event_type, source, external_id, payload, traceparent, ordering_key,
                 test_subscription_id, attributes, cloud_event, extracted, position)
), catalogue AS MATERIALIZED (
    SELECT %(revision)s::uuid IS DISTINCT FROM revision AND %(revision)s::uuid IS NOT NULL AS has_changed
      FROM event_types_revision WHERE is_only
), inserted AS (
    INSERT INTO events (webhook_id, tenant_id, event_type, source, external_id, payload, traceparent, ordering_key,
                        test_subscription_id, attributes, cloud_event, extracted_attributes)
    SELECT webhook_id, tenant_id, event_type, source, external_id, payload::json, traceparent, ordering_key,
           test_subscription_id, attributes::jsonb, cloud_event::jsonb, extracted::jsonb
      FROM input
     WHERE NOT (SELECT has_changed FROM catalogue)
     ORDER BY CASE WHEN %(in_order)s::boolean THEN position END, external_id NULLS FIRST, source, tenant_id, position
    ON CONFLICT (tenant_id, source, external_id) WHERE external_id IS NOT NULL DO NOTHING
    RETURNING id, webhook_id, created_at
)
SELECT input.position, inserted.id, inserted.webhook_id, inserted.created_at
  FROM inserted JOIN input USING (webhook_id)
UNION ALL
SELECT 0, 0, '00000000-0000-0000-0000-000000000000', now() FROM catalogue WHERE has_changed;

-- name: find_events_by_key
-- The existing events whose keys conflicted, and whether their content is the same: event type, tenant, ordering key,
-- given attributes and payload bytes, unless the payload was removed; a retry may have another trace. It is a separate
-- statement so that it sees rows that another transaction committed meanwhile.
SELECT input.position, e.id, e.webhook_id, e.created_at, e.traceparent,
       e.event_type = input.event_type AND (e.payload::text = input.payload) IS NOT FALSE
           AND e.ordering_key IS NOT DISTINCT FROM input.ordering_key
           AND e.attributes = input.attributes::jsonb AS same_content
  FROM unnest(%(tenant_ids)s::text[], %(event_types)s::text[], %(sources)s::text[],
              %(external_ids)s::text[], %(payloads)s::text[], %(ordering_keys)s::text[], %(attributes)s::text[],
              %(positions)s::bigint[])
       AS input (tenant_id, event_type, source, external_id, payload, ordering_key, attributes, position)
  JOIN events e ON e.tenant_id = input.tenant_id AND e.source = input.source
               AND e.external_id = input.external_id;

-- name: subscription_to_test
-- What a test event needs to know of its subscription.
SELECT tenant_id, event_types, active AND verified AS takes
  FROM subscriptions
 WHERE id = %(id)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);
