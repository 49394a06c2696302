-- name: route_outbox
-- Takes the oldest outbox rows, starts one saga per matching subscription, and deletes the rows, all or nothing.
-- Running it again starts no second saga. It deletes the rows, so it locks them FOR UPDATE. Of an event with more than
-- wide_from matching subscriptions it starts part_size sagas, by subscription id, and keeps the row for the next part.
-- The batch ends where its fan-out would exceed max_sagas: the oldest event is always in it, then those with the fewest
-- subscriptions, so that one with very many does not block others. What the statement saw is recorded per part, for
-- `explain`; an event that is routed again keeps its first decisions. The result has one row per event, built by
-- grouping: a join of the two steps would compare every event with every saga. OFFSET 0 makes each event read the
-- subscriptions of its own part. The range of a part compares pairs because only the routing index has these pairs, so
-- the scan starts there: a planner without statistics of subscriptions assumes that there is one, and would read all of
-- them for each event. Of the two conditions of accepted_after the index answers the first; the snapshot is looked up
-- only for an event that does not pass it.
WITH taken AS MATERIALIZED (
    SELECT event_id, started_through FROM routing_outbox
     WHERE (%(event_ids)s::bigint[] IS NULL OR event_id = ANY (%(event_ids)s::bigint[]))
       AND (%(go_on)s::boolean OR started_through = 0)
     ORDER BY event_id LIMIT %(max_events)s FOR UPDATE SKIP LOCKED
), candidate AS MATERIALIZED (
    SELECT e.id, e.webhook_id, e.traceparent, e.tenant_id, e.event_type, e.created_at, e.accepted_by, e.ordering_key,
           taken.started_through,
           CASE taken.started_through WHEN 0 THEN %(wide_from)s::int ELSE %(part_size)s::int END AS most
      FROM taken JOIN events e ON e.id = taken.event_id
), fan_out AS MATERIALIZED (
    SELECT tenant_id, event_type, started_through,
           CASE WHEN cardinality(ids) > most THEN %(part_size)s::int ELSE cardinality(ids) END AS size,
           CASE WHEN cardinality(ids) > most THEN ids[%(part_size)s::int] END AS through
      FROM (SELECT DISTINCT tenant_id, event_type, started_through, most FROM candidate) AS kind
     CROSS JOIN LATERAL (SELECT ARRAY(
          SELECT s.id FROM subscriptions s
           WHERE s.tenant_id = kind.tenant_id AND s.active AND s.verified AND s.deleted_at IS NULL
             AND (s.event_type, s.id) > (kind.event_type, kind.started_through)
             AND (s.event_type, s.id) <= (kind.event_type, 9223372036854775807)
           ORDER BY s.event_type, s.id LIMIT kind.most + 1) AS ids OFFSET 0) AS next
), chosen AS MATERIALIZED (
    SELECT *
      FROM (SELECT c.*, f.through,
                   sum(f.size) OVER (ORDER BY c.id > first.id, f.size, c.id) - f.size AS sagas_before
              FROM candidate c
              JOIN fan_out f USING (tenant_id, event_type, started_through)
             CROSS JOIN (SELECT min(id) AS id FROM candidate) AS first) AS counted
     WHERE sagas_before <= %(max_sagas)s
), started AS (
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, ordering_key)
    SELECT c.id, s.id, CASE WHEN s.ordered THEN coalesce(c.ordering_key, '') END
      FROM chosen c
     CROSS JOIN LATERAL (
          SELECT sub.id, sub.ordered FROM subscriptions sub
           WHERE sub.tenant_id = c.tenant_id AND sub.active AND sub.verified AND sub.deleted_at IS NULL
             AND (sub.event_type, sub.id) > (c.event_type, c.started_through)
             AND (sub.event_type, sub.id) <= (c.event_type, coalesce(c.through, 9223372036854775807))
             AND accepted_after(c.id, c.accepted_by, sub.eligible_after_event, eligible_snapshot_of(sub.id))
          OFFSET 0) AS s
     ORDER BY c.id, s.id
    ON CONFLICT (event_id, subscription_id, (CASE WHEN requeued_from IS NULL AND resent_from IS NULL THEN 0 ELSE id END)) DO NOTHING
    RETURNING id, event_id, subscription_id
), decided AS (
    INSERT INTO routing_decisions (event_id, after_subscription, through_subscription, newest_change, snapshot,
                                   sagas_started)
    SELECT event_id, max(after), max(through),
           coalesce((SELECT id FROM subscription_history ORDER BY id DESC LIMIT 1), 0), (SELECT pg_current_snapshot()),
           count(saga_id)
      FROM (SELECT id AS event_id, started_through AS after, through, NULL::bigint AS saga_id FROM chosen
            UNION ALL
            SELECT event_id, NULL, NULL, id FROM started) AS fan
     GROUP BY event_id ORDER BY event_id
    ON CONFLICT DO NOTHING
), done AS (
    DELETE FROM routing_outbox o USING chosen WHERE o.event_id = chosen.id AND chosen.through IS NULL
), partly_done AS (
    UPDATE routing_outbox o SET started_through = chosen.through
      FROM chosen WHERE o.event_id = chosen.id AND chosen.through IS NOT NULL
), joined AS (
    SELECT id, webhook_id, traceparent, created_at, through IS NULL AS whole, NULL::bigint[] AS saga_ids,
           NULL::bigint[] AS subscription_ids FROM chosen
    UNION ALL
    SELECT event_id, NULL, NULL, NULL, NULL, array_agg(id ORDER BY id), array_agg(subscription_id ORDER BY id)
      FROM started GROUP BY event_id
)
SELECT id, (array_agg(webhook_id) FILTER (WHERE webhook_id IS NOT NULL))[1] AS webhook_id,
       min(traceparent) AS traceparent,
       extract(epoch FROM clock_timestamp() - min(created_at))::float8 * 1000 AS delay_ms,
       coalesce(max(saga_ids), '{}') AS saga_ids, coalesce(max(subscription_ids), '{}') AS subscription_ids,
       bool_and(whole) AS whole,
       (SELECT count(*) FROM taken) > (SELECT count(*) FROM chosen) AS more
  FROM joined GROUP BY id ORDER BY id;

-- name: waiting_events
-- The events that the same poll takes, to find the one whose routing the database rejects.
SELECT e.id, e.webhook_id, e.traceparent
  FROM (SELECT event_id FROM routing_outbox
         WHERE (%(event_ids)s::bigint[] IS NULL OR event_id = ANY (%(event_ids)s::bigint[]))
           AND (%(go_on)s::boolean OR started_through = 0)
         ORDER BY event_id LIMIT %(max_events)s) AS waiting
  JOIN events e ON e.id = waiting.event_id
 ORDER BY e.id;

-- name: outbox_age
-- Seconds since the first event in the outbox was accepted; no row when all are routed.
SELECT extract(epoch FROM now() - created_at)::float8 AS seconds FROM routing_outbox ORDER BY event_id LIMIT 1;
