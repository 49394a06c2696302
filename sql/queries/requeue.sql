-- name: requeue_dead_letters
SELECT r.dead_letter_id, r.saga_id, r.created, r.reason, e.webhook_id, e.traceparent
  FROM requeue_dead_letter(%(dead_letter_ids)s::bigint[]) AS r
  JOIN dead_letters d ON d.id = r.dead_letter_id
  JOIN events e ON e.id = d.event_id
 ORDER BY r.dead_letter_id;

-- name: match_dead_letters
-- The dead letters that a filter means, oldest first; those already requeued are left out.
SELECT d.id FROM dead_letters d
 WHERE (%(tenant_id)s::text IS NULL OR d.tenant_id = %(tenant_id)s)
   AND (%(subscription_id)s::bigint IS NULL OR d.subscription_id = %(subscription_id)s)
   AND (%(event_type)s::text IS NULL OR d.event_type = %(event_type)s)
   AND (%(error_code)s::text IS NULL OR d.final_error_code = %(error_code)s)
   AND (%(failed_after)s::timestamptz IS NULL OR d.failed_at >= %(failed_after)s)
   AND (%(failed_before)s::timestamptz IS NULL OR d.failed_at < %(failed_before)s)
   AND d.id > %(after_id)s
   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.requeued_from = d.id)
 ORDER BY d.id LIMIT %(limit)s;
