-- Number of a subscription's sagas that are in progress, counted up to `most`. VOLATILE, so that it has a snapshot of its
-- own: a statement that has locked the subscription's flow row counts what others had committed before that lock.
CREATE OR REPLACE FUNCTION in_progress(subscription bigint, most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, public AS $$
BEGIN
    RETURN (SELECT count(*)::int
              FROM (SELECT FROM webhook_delivery_sagas g
                     WHERE g.status = 'InProgress' AND g.subscription_id = subscription
                     LIMIT most) AS counted);
END
$$;
