-- name: show_health
SELECT s.id AS subscription_id, s.active AND s.verified AS eligible, coalesce(h.consecutive_failures, 0) AS consecutive_failures,
       h.first_failure_at, h.last_failure_at, h.last_success_at, h.last_error_code, h.disabled_at, h.disabled_reason,
       m.counted_until
  FROM subscriptions s
  LEFT JOIN subscription_health h ON h.subscription_id = s.id
 CROSS JOIN subscription_health_mark m
 WHERE s.id = %(id)s AND s.deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR s.tenant_id = %(tenant_id)s);

-- name: read_missed
SELECT m.failing_since, m.since, m.dead_letters, m.events, m.at_least
  FROM subscriptions s CROSS JOIN LATERAL missed_while_disabled(s.id, %(most)s::integer) AS m
 WHERE s.id = %(id)s AND NOT s.active AND s.deleted_at IS NULL
   AND (%(tenant_id)s::text IS NULL OR s.tenant_id = %(tenant_id)s);
