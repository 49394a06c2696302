-- Events in which the attribute has one of the values, or any attribute has if its name is null; at most `most` for each
-- value, in no order. The index is read whatever statistics say. Without a name, the index gives a random part of a value
-- that more than 20,000 events have; the result is full then. With a name that would be wrong: the index has names and
-- values apart, and the parts of both have little in common.
CREATE OR REPLACE FUNCTION events_with_attribute(attribute text, wanted jsonb[], most integer) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public SET enable_seqscan = off SET enable_indexscan = off
SET enable_indexonlyscan = off SET gin_fuzzy_search_limit = 20000 AS $$
BEGIN
    IF attribute IS NULL THEN
        RETURN QUERY
            SELECT found.id FROM unnest(wanted) AS w (value) CROSS JOIN LATERAL (
                SELECT e.id FROM events e
                 WHERE (e.attributes <> '{}' OR e.extracted_attributes <> '{}')
                   AND attributes_of_event(e.attributes, e.extracted_attributes) @@ format('$.* == %s', w.value)::jsonpath
                 LIMIT most) AS found;
    ELSE
        PERFORM set_config('gin_fuzzy_search_limit', '0', true);
        RETURN QUERY
            SELECT found.id FROM unnest(wanted) AS w (value) CROSS JOIN LATERAL (
                SELECT e.id FROM events e
                 WHERE (e.attributes <> '{}' OR e.extracted_attributes <> '{}')
                   AND attributes_of_event(e.attributes, e.extracted_attributes) @> jsonb_build_object(attribute, w.value)
                 LIMIT most) AS found;
    END IF;
END
$$;
