-- Whether these are the event types of a subscription: 1 to 100 different patterns, each an exact type, a prefix that ends
-- in `.*`, or `*`.
CREATE OR REPLACE FUNCTION are_event_types(patterns varchar[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_ndims(patterns) = 1 AND count(*) BETWEEN 1 AND 100 AND count(*) = count(DISTINCT pattern)
                        AND bool_and(pattern ~ '^([A-Za-z0-9_.:/-]{1,100}|[A-Za-z0-9_.:/-]{1,98}\.\*|\*)$'), false)
      FROM unnest(patterns) AS pattern;
END;
