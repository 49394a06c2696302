-- name: route_outbox
-- Takes the oldest outbox rows, starts one saga for each matching subscription, and deletes the rows, all or
-- nothing (r04 §3). Repeating it makes no second saga. The batch ends where its fan-out would pass
-- max_sagas, so that events with very many subscriptions still fit in one transaction each. What the statement
-- saw is written down per event, for `explain`; an event that is routed again keeps its first decision. The
-- answer has one row per event, put together by grouping: a join of the two steps would compare every event with
-- every saga. OFFSET 0 makes each event read the subscriptions of its own type: a planner that has no statistics of
-- them takes them for one, and reads every one of them for each event.
WITH taken AS MATERIALIZED (
    SELECT event_id FROM routing_outbox
     WHERE %(event_ids)s::bigint[] IS NULL OR event_id = ANY (%(event_ids)s::bigint[])
     ORDER BY event_id LIMIT %(max_events)s FOR UPDATE SKIP LOCKED
), candidate AS MATERIALIZED (
    SELECT e.id, e.webhook_id, e.traceparent, e.tenant_id, e.event_type, e.created_at
      FROM taken JOIN events e ON e.id = taken.event_id
), fan_out AS MATERIALIZED (
    SELECT kind.tenant_id, kind.event_type, (
               SELECT count(*) FROM subscriptions s
                WHERE s.tenant_id = kind.tenant_id AND s.event_type = kind.event_type
                  AND s.active AND s.verified AND s.deleted_at IS NULL
           ) AS size
      FROM (SELECT DISTINCT tenant_id, event_type FROM candidate) AS kind
), chosen AS MATERIALIZED (
    SELECT id, webhook_id, traceparent, tenant_id, event_type, created_at
      FROM (SELECT c.*, sum(f.size) OVER (ORDER BY c.id) - f.size AS sagas_before
              FROM candidate c JOIN fan_out f USING (tenant_id, event_type)) AS counted
     WHERE sagas_before <= %(max_sagas)s
), started AS (
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id)
    SELECT c.id, s.id
      FROM chosen c
     CROSS JOIN LATERAL (
          SELECT sub.id FROM subscriptions sub
           WHERE sub.tenant_id = c.tenant_id AND sub.event_type = c.event_type
             AND sub.active AND sub.verified AND sub.deleted_at IS NULL AND sub.eligible_since <= c.created_at
          OFFSET 0) AS s
     ORDER BY c.id, s.id
    ON CONFLICT (event_id, subscription_id, coalesce(requeued_from, 0)) DO NOTHING
    RETURNING id, event_id
), decided AS (
    INSERT INTO routing_decisions (event_id, snapshot, sagas_started)
    SELECT event_id, (SELECT pg_current_snapshot()), count(saga_id)
      FROM (SELECT id AS event_id, NULL::bigint AS saga_id FROM chosen
            UNION ALL
            SELECT event_id, id FROM started) AS fan
     GROUP BY event_id ORDER BY event_id
    ON CONFLICT DO NOTHING
), done AS (
    DELETE FROM routing_outbox o USING chosen WHERE o.event_id = chosen.id
    RETURNING chosen.id, chosen.webhook_id, chosen.traceparent, chosen.created_at
), saga_ids AS MATERIALIZED (
    SELECT event_id, array_agg(id ORDER BY id) AS ids FROM started GROUP BY event_id
), joined AS (
    SELECT id, webhook_id, traceparent, created_at, NULL::bigint[] AS saga_ids FROM done
    UNION ALL
    SELECT event_id, NULL, NULL, NULL, ids FROM saga_ids
)
SELECT id, (array_agg(webhook_id) FILTER (WHERE webhook_id IS NOT NULL))[1] AS webhook_id,
       min(traceparent) AS traceparent,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 * 1000 AS delay_ms,
       coalesce(max(saga_ids), '{}') AS saga_ids,
       (SELECT count(*) FROM taken) > (SELECT count(*) FROM chosen) AS more
  FROM joined GROUP BY id ORDER BY id;

-- name: outbox_age
-- Seconds since the first event in the outbox was accepted; no row when all are routed.
SELECT extract(epoch FROM now() - created_at)::float8 AS seconds FROM routing_outbox ORDER BY event_id LIMIT 1;
