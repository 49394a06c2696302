-- No job for a saga that has ended, and none for another subscription than the saga's. FOR SHARE
-- makes a saga that is ending at this moment end first.
CREATE OR REPLACE FUNCTION refuse_jobs_of_ended_sagas() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    ended bigint;
BEGIN
    WITH held AS MATERIALIZED (
        SELECT s.id, s.status, s.subscription_id, n.subscription_id AS wanted
          FROM new_jobs n JOIN webhook_delivery_sagas s ON s.id = n.saga_id
         ORDER BY s.id FOR SHARE OF s
    )
    SELECT id INTO ended FROM held
     WHERE status IN ('Completed', 'DeadLettered') OR subscription_id <> wanted
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'saga % takes no such job: it has ended, or has another subscription', ended
            USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;
