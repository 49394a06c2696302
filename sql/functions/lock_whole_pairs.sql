-- Locks the named deliveries with their attempts and dead letters for deletion, and returns those of whose pair of event and
-- subscription every row could be locked.
CREATE OR REPLACE FUNCTION lock_whole_pairs(saga_ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    held_sagas bigint[];
    held_jobs bigint[];
    held_letters bigint[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT s.id FROM webhook_delivery_sagas s WHERE s.id = ANY (saga_ids) ORDER BY s.id FOR UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_sagas FROM held h;
    WITH held AS MATERIALIZED (
        SELECT j.id FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (held_sagas) ORDER BY j.id FOR UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_jobs FROM held h;
    WITH held AS MATERIALIZED (
        SELECT d.id FROM dead_letters d WHERE d.saga_id = ANY (held_sagas) ORDER BY d.id FOR UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_letters FROM held h;
    RETURN ARRAY(
        SELECT s.id FROM webhook_delivery_sagas s
         WHERE s.id = ANY (saga_ids)
           AND NOT EXISTS (
               SELECT FROM webhook_delivery_sagas g
                WHERE g.event_id = s.event_id AND g.subscription_id = s.subscription_id
                  AND (g.id <> ALL (held_sagas)
                       OR EXISTS (SELECT FROM webhook_delivery_jobs j WHERE j.saga_id = g.id AND j.id <> ALL (held_jobs))
                       OR EXISTS (SELECT FROM dead_letters d WHERE d.saga_id = g.id AND d.id <> ALL (held_letters))))
         ORDER BY s.id);
END
$$;
