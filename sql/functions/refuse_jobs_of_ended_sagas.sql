-- No job for a saga that has ended, and none for another subscription than the saga's or for another attempt than its next
-- one. FOR SHARE makes a saga that is
-- ending at this moment end first. A saga that this transaction has changed itself, as start_due does, is locked by that
-- and cannot end; another lock would be one more record in the log for each job.
CREATE OR REPLACE FUNCTION refuse_jobs_of_ended_sagas() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    ended bigint;
    may_end boolean;
BEGIN
    SELECT min(s.id) FILTER (WHERE s.status IN ('Completed', 'DeadLettered') OR s.subscription_id <> n.subscription_id
                                   OR s.next_attempt_at <> n.attempt_at),
           bool_or(s.xmin <> pg_current_xact_id()::xid)
      INTO ended, may_end
      FROM new_jobs n JOIN webhook_delivery_sagas s ON s.id = n.saga_id;
    IF ended IS NULL AND may_end THEN
        WITH held AS MATERIALIZED (
            SELECT s.id, s.status
              FROM new_jobs n JOIN webhook_delivery_sagas s ON s.id = n.saga_id
             ORDER BY s.id FOR SHARE OF s
        )
        SELECT min(h.id) INTO ended FROM held h WHERE h.status IN ('Completed', 'DeadLettered');
    END IF;
    IF ended IS NOT NULL THEN
        RAISE EXCEPTION 'saga % takes no such job: it has ended, or has another subscription or next attempt', ended
            USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;
