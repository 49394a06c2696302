-- Rejects attributes of an event that are not at most 20 names with short strings, numbers or booleans. The error names the
-- attribute and the rule, which a CHECK does not. The same rules as shared/hooksaga/core/event_attributes.py.
CREATE OR REPLACE FUNCTION refuse_wrong_attributes() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    broken record;
BEGIN
    IF jsonb_typeof(NEW.attributes) <> 'object' THEN
        RAISE EXCEPTION 'attributes: must be an object of at most 20 names' USING ERRCODE = 'HS001';
    END IF;
    SELECT count(*) OVER () AS number, name, is_name, is_value INTO broken
      FROM (SELECT name, name ~ '^[A-Za-z0-9_.-]{1,64}$' AS is_name,
                   CASE jsonb_typeof(value)
                   WHEN 'string' THEN length(value #>> '{}') <= 200 AND value #>> '{}' !~ '[\x01-\x1f\x7f]'
                   WHEN 'number' THEN abs(value::numeric) <= 1e30 AND scale(value::numeric) <= 400
                   ELSE jsonb_typeof(value) = 'boolean' END AS is_value
              FROM jsonb_each(NEW.attributes) AS given (name, value)) AS given
     ORDER BY is_name AND is_value LIMIT 1;
    IF broken.number > 20 THEN
        RAISE EXCEPTION 'attributes: must have at most 20 names, not %', broken.number USING ERRCODE = 'HS001';
    ELSIF NOT broken.is_name THEN
        RAISE EXCEPTION 'attributes.%: a name must have 1 to 64 characters from A-Z a-z 0-9 _ . -',
            left(broken.name, 200) USING ERRCODE = 'HS001';
    ELSIF NOT broken.is_value THEN
        RAISE EXCEPTION 'attributes.%: must be a string of at most 200 characters without control characters, '
            'a number from -10^30 to 10^30 with at most 400 decimal places, or a boolean', broken.name
            USING ERRCODE = 'HS001';
    END IF;
    RETURN NEW;
END
$$;
