-- Whether a compiled filter matches the attributes of an event, as compared_attributes() returns them; null is no filter. @@ raises
-- no error, whatever the attributes are: a comparison of different types is null.
CREATE OR REPLACE FUNCTION filter_matches(filter_path jsonpath, attributes jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN filter_path IS NULL OR (attributes @@ filter_path) IS TRUE;
