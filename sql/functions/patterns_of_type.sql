-- The patterns that match an event type: the type itself, its prefixes `a.*` and `a.b.*`, and `*`. Every comparison of an
-- event with the event types of a subscription uses this function: the two sets have a pattern in common. `*` does not
-- match the types of operational events: a subscription gets those only if it names them, or a prefix of them.
CREATE OR REPLACE FUNCTION patterns_of_type(of_type varchar) RETURNS varchar[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT ARRAY(SELECT left(of_type, n) || '*' FROM generate_series(1, length(of_type)) AS n
                  WHERE substr(of_type, n, 1) = '.')::varchar[]
           || of_type || CASE WHEN of_type LIKE 'hooksaga.%' THEN '{}' ELSE '{*}' END::varchar[];
END;
