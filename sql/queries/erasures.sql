-- name: start_erasure
SELECT id, created FROM start_erasure(%(webhook_id)s::uuid, %(tenant_id)s::varchar, %(attribute_name)s::varchar,
                                      %(attribute_values)s::jsonb, %(reason)s::varchar, %(key_id)s::bigint,
                                      %(created_by)s::varchar);

-- name: step_erasure
SELECT erasure_id, status::text, events, ended, skipped
  FROM step_erasure(%(max_events)s::int, %(max_read)s::int, %(max_deliveries)s::int);

-- part: erasure
SELECT r.id, r.status::text, r.tenant_id, r.webhook_id, r.attribute_name, r.reason, r.created_by, r.created_by_key_id, r.events,
       r.dead_letters, r.attempts, r.ended, r.in_flight, r.created_at, r.last_step_at, r.finished_at
  FROM erasures r

-- name: list_erasures
-- insert: erasure
 WHERE (%(tenant_id)s::text IS NULL OR r.tenant_id = %(tenant_id)s)
   AND (%(before_id)s::bigint IS NULL OR r.id < %(before_id)s)
 ORDER BY r.id DESC LIMIT %(limit)s;

-- name: show_erasure
-- insert: erasure
 WHERE r.id = %(id)s AND (%(tenant_id)s::text IS NULL OR r.tenant_id = %(tenant_id)s);
