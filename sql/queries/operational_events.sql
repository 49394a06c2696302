-- name: insert_operational_events
-- The key ensures that each event is stored once; rows are inserted in the order of the keys, as in accept_events.
INSERT INTO events (tenant_id, event_type, source, external_id, payload)
SELECT tenant_id, event_type, 'hooksaga', external_id, payload::json
  FROM unnest(%(tenant_ids)s::text[], %(event_types)s::text[], %(external_ids)s::text[], %(payloads)s::text[])
       AS t (tenant_id, event_type, external_id, payload)
 ORDER BY external_id, tenant_id
ON CONFLICT (tenant_id, source, external_id) WHERE external_id IS NOT NULL DO NOTHING
RETURNING id, webhook_id;

-- name: take_dead_letters
-- The oldest dead letters without an operational event, with the data that the event may contain: never the payload.
WITH taken AS MATERIALIZED (
    SELECT dead_letter_id FROM operational_outbox ORDER BY dead_letter_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
SELECT d.id, d.saga_id, d.subscription_id, d.tenant_id, d.event_type, d.final_error_code, d.failed_at, e.webhook_id,
       g.attempt_count, s.callback_url
  FROM taken
  JOIN dead_letters d ON d.id = taken.dead_letter_id
  JOIN events e ON e.id = d.event_id
  JOIN webhook_delivery_sagas g ON g.id = d.saga_id
  JOIN subscriptions s ON s.id = d.subscription_id
 ORDER BY d.id;

-- name: forget_dead_letters
DELETE FROM operational_outbox WHERE dead_letter_id = ANY (%(dead_letter_ids)s::bigint[]) RETURNING dead_letter_id AS id;
