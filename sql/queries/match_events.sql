-- name: subscription_to_match
SELECT tenant_id, event_types, filter::text AS filter FROM subscriptions
 WHERE id = %(id)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);

-- name: recent_events
-- The newest events of these types, except test events, and whether a compiled filter matches them. Of the newest
-- `scanned` ones of all tenants.
SELECT e.webhook_id, e.event_type, e.created_at, compared.attributes::text AS attributes,
       filter_matches(%(filter_path)s::jsonpath, compared.attributes) AS matches
  FROM (SELECT id FROM events_around(%(event_types)s::varchar[], 'infinity', %(scanned)s)
         WHERE tenant_id = %(tenant_id)s ORDER BY created_at DESC, id DESC LIMIT %(last)s) AS recent
  JOIN events e ON e.id = recent.id AND e.erasure_id IS NULL
 CROSS JOIN LATERAL (SELECT compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes)) AS attributes OFFSET 0) AS compared
 ORDER BY e.created_at DESC, e.id DESC;
