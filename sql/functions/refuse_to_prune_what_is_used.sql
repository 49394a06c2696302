-- Rejects the deletion of an event that is not routed, or that a delivery or a routing decision still refers to, of a job
-- whose saga has not ended, and of the requeue of a dead letter that stays: a second requeue must find it. Reads the
-- deleted rows from `gone`.
CREATE OR REPLACE FUNCTION refuse_to_prune_what_is_used() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    used bigint;
BEGIN
    IF TG_TABLE_NAME = 'events' THEN
        SELECT g.id INTO used FROM gone g
         WHERE EXISTS (SELECT FROM webhook_delivery_sagas s WHERE s.event_id = g.id)
            OR EXISTS (SELECT FROM dead_letters d WHERE d.event_id = g.id)
            OR EXISTS (SELECT FROM routing_decisions r WHERE r.event_id = g.id)
         LIMIT 1;
    ELSIF TG_TABLE_NAME = 'webhook_delivery_jobs' THEN
        SELECT s.id INTO used FROM gone g JOIN webhook_delivery_sagas s ON s.id = g.saga_id
         WHERE s.status NOT IN ('Completed', 'DeadLettered')
         LIMIT 1;
    ELSE
        SELECT g.id INTO used FROM gone g
         WHERE g.requeued_from IS NOT NULL AND EXISTS (SELECT FROM dead_letters d WHERE d.id = g.requeued_from)
         LIMIT 1;
    END IF;
    IF FOUND THEN
        RAISE EXCEPTION 'DELETE on % is refused: something still refers to %', TG_TABLE_NAME, used
            USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;
