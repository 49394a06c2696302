-- Events in which the attribute has one of the values, or any attribute has if its name is null; at most `most` for each
-- value, in no order. The index is read whatever statistics say. A value that very many events have is read up to a limit,
-- and then the result is full.
CREATE OR REPLACE FUNCTION events_with_attribute(attribute text, wanted jsonb[], most integer) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public SET enable_seqscan = off SET enable_indexscan = off
SET enable_indexonlyscan = off SET gin_fuzzy_search_limit = 20000 AS $$
BEGIN
    IF attribute IS NULL THEN
        RETURN QUERY
            SELECT found.id FROM unnest(wanted) AS w (value) CROSS JOIN LATERAL (
                SELECT e.id FROM events e
                 WHERE e.attributes <> '{}' AND e.attributes @@ format('$.* == %s', w.value)::jsonpath
                 LIMIT most) AS found;
    ELSE
        RETURN QUERY
            SELECT found.id FROM unnest(wanted) AS w (value) CROSS JOIN LATERAL (
                SELECT e.id FROM events e
                 WHERE e.attributes <> '{}' AND e.attributes @> jsonb_build_object(attribute, w.value)
                 LIMIT most) AS found;
    END IF;
END
$$;
