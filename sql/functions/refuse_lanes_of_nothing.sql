-- Checks that the subscription of a lane exists, without a lock, as refuse_sagas_of_nothing does: a locked
-- subscription must not block the start of an operation.
CREATE OR REPLACE FUNCTION refuse_lanes_of_nothing() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
    orphan bigint;
BEGIN
    SELECT n.subscription_id INTO orphan FROM new_lanes n
     WHERE (SELECT s.id FROM subscriptions s WHERE s.id = n.subscription_id) IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a lane names subscription %, which does not exist', orphan
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;
