-- name: route_outbox
-- Takes the oldest outbox rows, starts one saga per matching subscription, and deletes the rows, all or nothing.
-- Running it again starts no second saga. It deletes the rows, so it locks them FOR UPDATE. Of an event with more than
-- wide_from matching subscriptions it starts part_size sagas, by subscription id, and keeps the row for the next part.
-- The batch ends where its fan-out would exceed max_sagas: the oldest event is always in it, then those with the fewest
-- subscriptions, so that one with very many does not block others. What the statement saw is recorded per part, for
-- `explain`; an event that is routed again keeps its first decisions. The result has one row per event, built by
-- grouping: a join of the two steps would compare every event with every saga.
-- A test event takes one subscription only. Other events of one tenant and type, at the same progress, take the same
-- subscriptions, so these are read once per kind, at most as many as one part needs, with their filters. OFFSET 0 makes
-- each kind read its own. Each event then compares with accepted_after: the index has what answers its first condition;
-- the snapshot is looked up only for an event that does not pass it. A filter compares what compared_attributes() makes of each
-- event once. A test event ignores it.
WITH taken AS MATERIALIZED (
    SELECT event_id, started_through AS progress FROM routing_outbox
     WHERE (%(event_ids)s::bigint[] IS NULL OR event_id = ANY (%(event_ids)s::bigint[]))
       AND (%(go_on)s::boolean OR started_through = 0)
     ORDER BY event_id LIMIT %(max_events)s FOR UPDATE SKIP LOCKED
), event AS MATERIALIZED (
    SELECT id, webhook_id, traceparent, tenant_id, event_type, created_at, accepted_by, ordering_key,
           attributes_of_event(attributes, extracted_attributes) AS attributes,
           test_subscription_id AS test_id, progress,
           dense_rank() OVER (ORDER BY tenant_id, event_type, progress, test_subscription_id) AS kind
      FROM taken JOIN events ON id = event_id
), fan_out AS MATERIALIZED (
    SELECT kind, ids, since, ordered, paths, filtered,
           CASE WHEN cardinality(ids) > most THEN %(part_size)s::int ELSE coalesce(cardinality(ids), 0) END AS size,
           CASE WHEN cardinality(ids) > most THEN ids[%(part_size)s::int] END AS through
      FROM (SELECT DISTINCT ON (kind) kind, tenant_id, event_type, progress, test_id,
                   CASE progress WHEN 0 THEN %(wide_from)s::int ELSE %(part_size)s::int END AS most
              FROM event ORDER BY kind) AS kinds
     CROSS JOIN LATERAL (
          SELECT array_agg(id ORDER BY id) AS ids, array_agg(since ORDER BY id) AS since,
                 array_agg(ordered ORDER BY id) AS ordered,
                 array_agg(CASE WHEN filtered AND test_id IS NULL THEN filter_of(id) END ORDER BY id) AS paths,
                 bool_or(filtered) AS filtered
            FROM matching_subscriptions(tenant_id, event_type, coalesce(test_id - 1, progress),
                                        coalesce(test_id, 9223372036854775807), most + 1) AS m
          OFFSET 0) AS next
), chosen AS MATERIALIZED (
    SELECT *, compared_attributes(CASE WHEN filtered THEN attributes END) AS compared
      FROM (SELECT c.*, f.through, f.filtered,
                   sum(f.size) OVER (ORDER BY c.id > first.id, f.size, c.id) - f.size AS before
              FROM event c
              JOIN fan_out f USING (kind)
             CROSS JOIN (SELECT min(id) AS id FROM event) AS first) AS counted
     WHERE before <= %(max_sagas)s
), started AS (
    INSERT INTO webhook_delivery_sagas (event_id, subscription_id, ordering_key)
    SELECT c.id, s.id, CASE WHEN s.ordered THEN coalesce(c.ordering_key, '') END
      FROM chosen c
      JOIN fan_out f USING (kind)
     CROSS JOIN unnest(f.ids, f.since, f.ordered, f.paths) AS s (id, since, ordered, path)
     WHERE s.id <= coalesce(c.through, 9223372036854775807)
       AND accepted_after(c.id, c.accepted_by, s.since, eligible_snapshot_of(s.id))
       AND filter_matches(s.path, c.compared)
     ORDER BY c.id, s.id
    ON CONFLICT DO NOTHING
    RETURNING id, event_id, subscription_id
), decided AS (
    INSERT INTO routing_decisions (event_id, after_subscription, through_subscription, newest_change, snapshot,
                                   sagas_started)
    SELECT event_id, nullif(max(after), 0), max(through),
           coalesce((SELECT id FROM subscription_history ORDER BY id DESC LIMIT 1), 0), (SELECT pg_current_snapshot()),
           count(saga_id)
      FROM (SELECT id AS event_id, progress AS after, through, NULL::bigint AS saga_id FROM chosen
            UNION ALL
            SELECT event_id, NULL, NULL, id FROM started) AS fan
     GROUP BY event_id ORDER BY event_id
    ON CONFLICT DO NOTHING
), done AS (
    DELETE FROM routing_outbox o USING chosen WHERE o.event_id = chosen.id AND chosen.through IS NULL
), partly AS (
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
