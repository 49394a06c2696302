-- Locks the named events with their dead letters, and returns those of which every row could be locked.
CREATE OR REPLACE FUNCTION lock_content(event_ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    held_letters bigint[];
    held_events bigint[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT d.id FROM dead_letters d WHERE d.event_id = ANY (event_ids) ORDER BY d.id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_letters FROM held h;
    WITH held AS MATERIALIZED (
        SELECT e.id FROM events e WHERE e.id = ANY (event_ids) ORDER BY e.id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_events FROM held h;
    RETURN ARRAY(
        SELECT h.id FROM unnest(held_events) AS h (id)
         WHERE NOT EXISTS (SELECT FROM dead_letters d WHERE d.event_id = h.id AND d.id <> ALL (held_letters))
         ORDER BY h.id);
END
$$;
