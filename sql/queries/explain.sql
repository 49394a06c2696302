-- name: show_routing
-- One statement, so that an event is seen either in the outbox or routed, never neither. It is routed with the part
-- that has no upper end.
SELECT e.id AS event_id, e.webhook_id, e.tenant_id, e.event_type, e.test_subscription_id, e.created_at AS accepted_at,
       compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes))::text AS attributes,
       num_nonnulls(e.erasure_id) = 1 AS is_erased,
       o.created_at AS waiting_since, d.routed_at, d.sagas_started
  FROM events e
  LEFT JOIN routing_outbox o ON o.event_id = e.id
 CROSS JOIN LATERAL (
      SELECT min(routed_at) FILTER (WHERE through_subscription IS NULL) AS routed_at,
             sum(sagas_started) AS sagas_started
        FROM routing_decisions WHERE event_id = e.id) AS d
 WHERE e.webhook_id = %(webhook_id)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s);

-- The three walks step through a tenant's subscriptions by id on an index. fits is false for a subscription that an
-- earlier walk shows. The conditions on each are written so that no plan can read all rows of an event or a type: by
-- the ids that were walked, or LATERAL with a LIMIT.

-- name: walk_started
-- Subscriptions with a saga of the event.
SELECT DISTINCT subscription_id AS id, true AS fits FROM webhook_delivery_sagas
 WHERE event_id = %(event_id)s AND subscription_id > %(after_id)s
 ORDER BY subscription_id LIMIT %(limit)s;

-- name: walk_of_type
-- Subscriptions that ever had a pattern of the event's type: the next ones of each pattern, then the first of these.
WITH walked AS MATERIALIZED (
    SELECT DISTINCT next.id
      FROM unnest(patterns_of_type(%(event_type)s::varchar)) AS of_type (pattern)
     CROSS JOIN LATERAL (
          SELECT p.subscription_id AS id FROM subscription_pattern_history p
           WHERE p.tenant_id = %(tenant_id)s AND p.pattern = of_type.pattern AND p.subscription_id > %(after_id)s
           ORDER BY p.subscription_id LIMIT %(limit)s) AS next
     ORDER BY next.id LIMIT %(limit)s
), started AS MATERIALIZED (
    SELECT subscription_id FROM webhook_delivery_sagas
     WHERE event_id = %(event_id)s AND subscription_id = ANY (ARRAY(SELECT id FROM walked))
)
SELECT w.id, NOT EXISTS (SELECT FROM started WHERE started.subscription_id = w.id) AS fits
  FROM walked w ORDER BY w.id;

-- name: walk_others
WITH walked AS MATERIALIZED (
    SELECT id FROM subscriptions WHERE tenant_id = %(tenant_id)s AND id > %(after_id)s
     ORDER BY tenant_id, id LIMIT %(limit)s
), started AS MATERIALIZED (
    SELECT subscription_id FROM webhook_delivery_sagas
     WHERE event_id = %(event_id)s AND subscription_id = ANY (ARRAY(SELECT id FROM walked))
)
SELECT w.id,
       of_type.id IS NULL AND NOT EXISTS (SELECT FROM started WHERE started.subscription_id = w.id) AS fits
  FROM walked w
  LEFT JOIN LATERAL (
      SELECT p.subscription_id AS id FROM subscription_pattern_history p
       WHERE p.tenant_id = %(tenant_id)s AND p.pattern = ANY (patterns_of_type(%(event_type)s::varchar))
         AND p.subscription_id = w.id
       LIMIT 1) AS of_type ON true
 ORDER BY w.id;

-- name: decisions_of_subscriptions
-- For each subscription: the state that the router saw in its part, the state now, and the newest saga. then_in_time:
-- the event was accepted after the subscription, as it was then, became eligible. by_router: the saga was started in
-- the transaction of a decision, whose time it has; routed: one of its sagas was. Order is decided by ids and
-- snapshots, never by times.
WITH event AS MATERIALIZED (
    SELECT id, accepted_by FROM events WHERE id = %(event_id)s
), decision AS MATERIALIZED (
    SELECT after_subscription, through_subscription, routed_at, newest_change, snapshot
      FROM routing_decisions WHERE event_id = %(event_id)s
), saga AS MATERIALIZED (
    SELECT DISTINCT ON (subscription_id) *, bool_or(by_router) OVER (PARTITION BY subscription_id) AS routed
      FROM (SELECT g.*, g.requeued_from IS NULL AND g.resent_from IS NULL
                   AND g.created_at IN (SELECT routed_at FROM decision) AS by_router
              FROM webhook_delivery_sagas g
             WHERE g.event_id = %(event_id)s AND g.subscription_id = ANY (%(subscription_ids)s::bigint[])) AS started
     ORDER BY subscription_id, id DESC
)
SELECT s.id AS subscription_id, s.callback_url, s.max_retry_limit, s.created_at AS subscription_created_at,
       s.event_types AS now_event_types, s.filter::text AS now_filter, s.active AS now_active, s.verified AS now_verified,
       s.eligible_since AS now_eligible_since, s.deleted_at AS now_deleted_at,
       seen.event_types AS then_event_types, seen.filter::text AS then_filter, seen.active AS then_active, seen.verified AS then_verified,
       seen.eligible_since AS then_eligible_since, seen.deleted_at AS then_deleted_at,
       coalesce(accepted_after(event.id, event.accepted_by, seen.eligible_after_event, seen.eligible_snapshot), false)
           AS then_in_time,
       saga.id AS saga_id, saga.status AS saga_status, saga.created_at AS saga_created_at, saga.attempt_count,
       saga.next_attempt_at, saga.final_error_code, saga.requeued_from, saga.resent_from,
       letter.id AS dead_letter_id, letter.reason AS dead_letter_reason,
       coalesce(saga.routed, false) AS routed, coalesce(saga.by_router, false) AS by_router
  FROM event CROSS JOIN unnest(%(subscription_ids)s::bigint[]) WITH ORDINALITY AS wanted (id, position)
  JOIN subscriptions s ON s.id = wanted.id
  LEFT JOIN LATERAL (
      SELECT decision.newest_change, decision.snapshot FROM decision
       WHERE coalesce(decision.after_subscription, 0) < s.id
         AND (decision.through_subscription IS NULL OR s.id <= decision.through_subscription)
       ORDER BY decision.newest_change, pg_snapshot_xmax(decision.snapshot) LIMIT 1) AS d ON true
  LEFT JOIN saga ON saga.subscription_id = s.id
  LEFT JOIN LATERAL (
      SELECT h.event_types, h.filter, h.active, h.verified, h.eligible_since, h.eligible_after_event, h.eligible_snapshot,
             h.deleted_at
        FROM subscription_history h
       WHERE h.subscription_id = s.id
         AND change_was_seen(h.id, h.changed_by, h.changed_in, d.newest_change, d.snapshot)
       ORDER BY h.id DESC LIMIT 1) AS seen ON true
  LEFT JOIN LATERAL (SELECT l.id, l.reason FROM dead_letters l WHERE l.saga_id = saga.id LIMIT 1) AS letter ON true
 ORDER BY wanted.position;
