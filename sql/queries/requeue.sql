-- name: requeue_dead_letters
SELECT r.dead_letter_id, d.subscription_id, r.saga_id, r.created, r.reason, e.webhook_id, e.traceparent
  FROM requeue_dead_letter(%(dead_letter_ids)s::bigint[]) AS r
  JOIN dead_letters d ON d.id = r.dead_letter_id
  JOIN events e ON e.id = d.event_id
 ORDER BY r.dead_letter_id;

-- name: dead_letters_of_tenant
SELECT id FROM dead_letters
 WHERE id = ANY (%(dead_letter_ids)s::bigint[]) AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
 ORDER BY id;

-- name: ids_of_time
-- The id range of the dead letters of a time range, both ends excluded, as far as ids follow time: from the lowest of
-- the first thousand to the highest of the last thousand. So a scan by id does not read all older or newer rows.
SELECT CASE WHEN %(failed_after)s::timestamptz IS NOT NULL THEN coalesce(
         (SELECT min(id) FROM (SELECT id FROM dead_letters WHERE failed_at >= %(failed_after)s
                                ORDER BY failed_at LIMIT 1000) AS first) - 1, 9223372036854775807) END AS after_id,
       CASE WHEN %(failed_before)s::timestamptz IS NOT NULL THEN coalesce(
         (SELECT max(id) FROM (SELECT id FROM dead_letters WHERE failed_at < %(failed_before)s
                                ORDER BY failed_at DESC LIMIT 1000) AS last) + 1, 0) END AS before_id;

-- name: match_dead_letters
-- Dead letters that match a filter, oldest first. Those without payload or already requeued are excluded, and those that somebody canceled
-- or discarded, unless the filter names the error code.
SELECT d.id FROM dead_letters d
 WHERE (%(tenant_id)s::text IS NULL OR d.tenant_id = %(tenant_id)s)
   AND (%(subscription_id)s::bigint IS NULL OR d.subscription_id = %(subscription_id)s)
   AND (%(event_type)s::text IS NULL OR d.event_type = %(event_type)s)
   AND (%(error_code)s::text IS NULL OR d.final_error_code = %(error_code)s)
   AND (%(error_code)s::text IS NOT NULL OR coalesce(d.final_error_code, '') NOT IN ('canceled', 'discarded'))
   AND (%(failed_after)s::timestamptz IS NULL OR d.failed_at >= %(failed_after)s)
   AND (%(failed_before)s::timestamptz IS NULL OR d.failed_at < %(failed_before)s)
   AND (%(after_id)s::bigint IS NULL OR d.id > %(after_id)s)
   AND (%(before_id)s::bigint IS NULL OR d.id < %(before_id)s)
   AND num_nonnulls(d.payload_snapshot) = 1
   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.requeued_from = d.id)
 ORDER BY d.id LIMIT %(limit)s;
