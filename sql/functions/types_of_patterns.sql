-- The event types that patterns match: exact types as they are; for others, the accepted events' types, one step along the
-- index for each different type.
CREATE OR REPLACE FUNCTION types_of_patterns(patterns varchar[]) RETURNS SETOF varchar
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM unnest(patterns) AS pattern WHERE pattern LIKE '%*') THEN
        RETURN QUERY SELECT unnest(patterns);
        RETURN;
    END IF;
    RETURN QUERY
        WITH RECURSIVE known (event_type) AS (
            (SELECT e.event_type FROM events e ORDER BY e.event_type LIMIT 1)
            UNION ALL
            SELECT (SELECT e.event_type FROM events e WHERE e.event_type > k.event_type
                     ORDER BY e.event_type LIMIT 1)
              FROM known k WHERE k.event_type IS NOT NULL
        )
        SELECT k.event_type FROM known k WHERE patterns && patterns_of_type(k.event_type);
END
$$;
