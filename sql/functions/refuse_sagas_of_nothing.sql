-- What a saga names is there, and a saga that it sends again has ended and is of its pair, unless retention has deleted
-- it. Events, subscriptions and dead letters never go and keep their ids, so a plain read is
-- proof. A foreign key takes a lock on the row of the parent, and every batch would wait for whoever has locked that
-- (decision 59). Scalar subqueries, because no planner makes anything else of them than a look by primary key.
CREATE OR REPLACE FUNCTION refuse_sagas_of_nothing() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
    orphan bigint;
BEGIN
    SELECT n.id INTO orphan
      FROM new_sagas n
     WHERE (SELECT e.id FROM events e WHERE e.id = n.event_id) IS NULL
        OR (SELECT s.id FROM subscriptions s WHERE s.id = n.subscription_id) IS NULL
        OR n.requeued_from IS NOT NULL AND (SELECT d.id FROM dead_letters d WHERE d.id = n.requeued_from) IS NULL
        OR n.resent_from IS NOT NULL AND (
           SELECT (o.event_id, o.subscription_id) = (n.event_id, n.subscription_id)
                  AND o.status::text IN ('Completed', 'DeadLettered')
             FROM webhook_delivery_sagas o WHERE o.id = n.resent_from) IS FALSE
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'saga % names an event, a subscription or a dead letter that does not exist, or sends another pair again', orphan
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;
