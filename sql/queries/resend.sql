-- name: resend_saga
-- The saga is read first, so that the function is called for the caller's tenant only.
WITH wanted AS MATERIALIZED (
    SELECT s.id, s.subscription_id, e.webhook_id, e.traceparent
      FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
     WHERE s.id = %(saga_id)s AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
)
SELECT r.origin_id, w.subscription_id, r.saga_id, r.created, r.reason, w.webhook_id, w.traceparent
  FROM wanted w CROSS JOIN LATERAL resend_sagas(ARRAY[w.id]) AS r;

-- name: resend_chosen_sagas
WITH wanted AS MATERIALIZED (
    SELECT s.id, s.subscription_id, e.webhook_id, e.traceparent
      FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
     WHERE s.id = ANY (%(saga_ids)s::bigint[]) AND (%(tenant_id)s::text IS NULL OR e.tenant_id = %(tenant_id)s)
)
SELECT r.origin_id, w.subscription_id, r.saga_id, r.created, r.reason, w.webhook_id, w.traceparent
  FROM resend_sagas(ARRAY(SELECT id FROM wanted ORDER BY id)) AS r JOIN wanted w ON w.id = r.origin_id
 ORDER BY r.origin_id;

-- name: retry_saga_now
SELECT w.subscription_id, w.takes, CASE WHEN w.takes THEN retry_now(w.subscription_id, w.id, %(most)s::int) ELSE 0 END
       AS retried
  FROM (SELECT g.id, g.subscription_id, s.active AND s.verified AND s.deleted_at IS NULL AS takes
          FROM webhook_delivery_sagas g JOIN subscriptions s ON s.id = g.subscription_id
         WHERE g.id = %(saga_id)s AND (%(tenant_id)s::text IS NULL OR s.tenant_id = %(tenant_id)s)) AS w;

-- name: retry_subscription_now
SELECT w.id AS subscription_id, w.takes, CASE WHEN w.takes THEN retry_now(w.id, NULL, %(most)s::int) ELSE 0 END
       AS retried
  FROM (SELECT s.id, s.active AND s.verified AS takes
          FROM subscriptions s
         WHERE s.id = %(id)s AND s.deleted_at IS NULL
           AND (%(tenant_id)s::text IS NULL OR s.tenant_id = %(tenant_id)s)) AS w;
