-- part: flow_and_settings
       f.subscription_id, f.version, f.in_flight_limit, f.limit_halved_at, f.tokens, f.tokens_at, f.retry_after_until,
       f.failures_in_a_row, f.breaker_opened_at, f.probes, f.probe_at, f.probe_saga_id, f.slow_until, f.wake_at,
       f.order_cursor, f.discard_through,
       s.active AND s.verified AND s.deleted_at IS NULL AS deliverable, s.paused_at, s.resumed_at, s.max_in_flight,
       s.rate_limit_count, s.rate_limit_seconds, s.circuit_breaker, s.max_wait_seconds, s.max_retry_limit, now() AS now

-- name: flow_of_subscriptions
-- Flow of each subscription, with what is in flight, what waits, counted up to `most`, and when the first of it is or
-- was due. Waiting deliveries outside of the order and ordered ones are two ranges of one index.
SELECT
       -- insert: flow_and_settings
       , busy.in_flight, least(plain.waiting + keyed.waiting, %(most)s::int) AS waiting,
       least(plain.oldest_at, keyed.oldest_at) AS oldest_waiting_at
  FROM unnest(%(ids)s::bigint[]) AS u (id)
  JOIN subscriptions s ON s.id = u.id
  JOIN subscription_flow f ON f.subscription_id = u.id
 CROSS JOIN LATERAL (
      SELECT count(*)::int AS in_flight FROM (
          SELECT FROM webhook_delivery_sagas g WHERE g.status = 'InProgress' AND g.subscription_id = u.id
           LIMIT 1000) AS counted) AS busy
 CROSS JOIN LATERAL (
      SELECT count(*)::int AS waiting, min(next_attempt_at) AS oldest_at FROM (
          SELECT g.next_attempt_at FROM webhook_delivery_sagas g
           WHERE g.status IN ('Pending', 'PendingRetry') AND g.subscription_id = u.id
             AND num_nonnulls(g.ordering_key) = 0
           ORDER BY g.next_attempt_at, g.id LIMIT %(most)s::int) AS counted) AS plain
 CROSS JOIN LATERAL (
      SELECT count(*)::int AS waiting, min(next_attempt_at) AS oldest_at FROM (
          SELECT g.next_attempt_at FROM webhook_delivery_sagas g
           WHERE g.status IN ('Pending', 'PendingRetry') AND g.subscription_id = u.id
             AND num_nonnulls(g.ordering_key) = 1
           ORDER BY g.next_attempt_at, g.id LIMIT %(most)s::int) AS counted) AS keyed;

-- name: flow_of_sagas
-- Flow of the subscription of each of these sagas that waits. earlier_saga_id: the saga before it in the order, if it
-- has not ended. earlier_event: an earlier event of its key is still to be routed.
SELECT g.id AS saga_id, g.next_attempt_at, busy.in_flight, earlier.id AS earlier_saga_id,
       g.ordering_key IS NOT NULL AND earlier_event_waits(g.subscription_id, g.event_id, g.ordering_key)
           AS earlier_event,
       -- insert: flow_and_settings
  FROM webhook_delivery_sagas g
  JOIN subscriptions s ON s.id = g.subscription_id
  JOIN subscription_flow f ON f.subscription_id = g.subscription_id
 CROSS JOIN LATERAL (
      SELECT count(*)::int AS in_flight FROM (
          SELECT FROM webhook_delivery_sagas b WHERE b.status = 'InProgress' AND b.subscription_id = g.subscription_id
           LIMIT least(f.in_flight_limit, s.max_in_flight, 1000)::int) AS counted) AS busy
  LEFT JOIN LATERAL (
      SELECT e.id FROM webhook_delivery_sagas e
       WHERE e.subscription_id = g.subscription_id AND e.ordering_key = g.ordering_key AND e.event_id < g.event_id
         AND e.ordering_key IS NOT NULL AND e.status IN ('Pending', 'InProgress', 'PendingRetry')
       ORDER BY e.event_id DESC LIMIT 1) AS earlier ON true
 WHERE g.id = ANY (%(saga_ids)s::bigint[]) AND g.status::text IN ('Pending', 'PendingRetry');

-- name: pause
-- Pausing a paused subscription changes nothing, so that a repeated call keeps the time of the first one.
UPDATE subscriptions SET paused_at = clock_timestamp()
 WHERE id = %(id)s AND deleted_at IS NULL AND paused_at IS NULL
   AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
RETURNING id;

-- name: resume
-- Resuming a subscription that is not paused changes nothing: a repeated call discards nothing that came after the
-- first one. Discarded are the sagas that exist now; the orchestrator ends them.
UPDATE subscriptions
   SET paused_at = NULL, resumed_at = clock_timestamp(),
       discard_through = CASE WHEN %(discard)s::boolean
                              THEN coalesce((SELECT max(id) FROM webhook_delivery_sagas), 0)
                              ELSE discard_through END
 WHERE id = %(id)s AND deleted_at IS NULL AND paused_at IS NOT NULL
   AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
RETURNING id;
