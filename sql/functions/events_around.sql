-- The events, except test events, that patterns match from a time on, at most `most`, and as many from before it.
-- Those of `*` lie close together, so they are read by time; others are read by type.
CREATE OR REPLACE FUNCTION events_around(patterns varchar[], around timestamptz, most integer)
RETURNS TABLE (id bigint, tenant_id varchar, created_at timestamptz, attributes jsonb, is_erased boolean)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
BEGIN
    IF '*' = ANY (patterns) THEN
        RETURN QUERY
            (SELECT e.id, e.tenant_id, e.created_at, attributes_of_event(e.attributes, e.extracted_attributes),
                    e.removed_at IS NOT NULL
               FROM events e
              WHERE e.created_at >= around AND e.test_subscription_id IS NULL
                AND patterns && patterns_of_type(e.event_type)
              ORDER BY e.created_at LIMIT most)
            UNION ALL
            (SELECT e.id, e.tenant_id, e.created_at, attributes_of_event(e.attributes, e.extracted_attributes),
                    e.removed_at IS NOT NULL
               FROM events e
              WHERE e.created_at < around AND e.test_subscription_id IS NULL
                AND patterns && patterns_of_type(e.event_type)
              ORDER BY e.created_at DESC LIMIT most);
    ELSE
        RETURN QUERY
            WITH of_type AS MATERIALIZED (SELECT types_of_patterns(patterns) AS event_type)
            (SELECT e.* FROM of_type CROSS JOIN LATERAL (
                 SELECT id, tenant_id, created_at, attributes_of_event(attributes, extracted_attributes),
                        removed_at IS NOT NULL
                   FROM events
                  WHERE event_type = of_type.event_type AND test_subscription_id IS NULL AND created_at >= around
                  ORDER BY created_at LIMIT most) AS e
              ORDER BY created_at LIMIT most)
            UNION ALL
            (SELECT e.* FROM of_type CROSS JOIN LATERAL (
                 SELECT id, tenant_id, created_at, attributes_of_event(attributes, extracted_attributes),
                        removed_at IS NOT NULL
                   FROM events
                  WHERE event_type = of_type.event_type AND test_subscription_id IS NULL AND created_at < around
                  ORDER BY created_at DESC LIMIT most) AS e
              ORDER BY created_at DESC LIMIT most);
    END IF;
END
$$;
