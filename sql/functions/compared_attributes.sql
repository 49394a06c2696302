-- What filters compare: the attributes of an event, as attributes_of_event() returns them, and of each string its reverse as
-- "~name" and, with the letters A to Z in lower case, as "^name". So a filter needs no regular expression. Names of
-- attributes have neither mark. Every reader of a filter uses this function.
CREATE OR REPLACE FUNCTION compared_attributes(given jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT CASE WHEN given = '{}' OR jsonb_typeof(given) <> 'object' THEN given ELSE given || coalesce((
        SELECT jsonb_object_agg(mark || name, CASE mark WHEN '~' THEN reverse(value) ELSE lower(value COLLATE "C") END)
          FROM jsonb_each_text(given) AS each (name, value) CROSS JOIN unnest('{~,^}'::text[]) AS mark
         WHERE jsonb_typeof(given -> name) = 'string'), '{}') END;
END;
