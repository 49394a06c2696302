-- Deletes those of the named events that were accepted before the given time and to which nothing refers any more, with
-- their routing decisions, and returns how many. An event with deliveries stays until the last of them is deleted, whose
-- batch calls this again, so that prune_events passes each event once. What is not routed or is locked now is noted in
-- retention_left. LIMIT: an anti-join may read all deliveries of a wide event.
CREATE OR REPLACE FUNCTION prune_passed_events(event_ids bigint[], accepted_before timestamptz) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    unused bigint[];
    doomed bigint[];
    deleted bigint;
BEGIN
    IF accepted_before IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(e.id) INTO unused
      FROM events e
     WHERE e.id = ANY (event_ids) AND e.created_at < accepted_before
       AND (SELECT g.id FROM webhook_delivery_sagas g WHERE g.event_id = e.id LIMIT 1) IS NULL;
    IF unused IS NULL THEN
        RETURN 0;
    END IF;
    WITH held AS MATERIALIZED (
        SELECT e.id FROM events e
         WHERE e.id = ANY (unused)
           -- Both in one snapshot: the router takes the row from the outbox in the statement that starts the deliveries.
           AND NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id)
           AND (SELECT g.id FROM webhook_delivery_sagas g WHERE g.event_id = e.id LIMIT 1) IS NULL
         ORDER BY e.id FOR UPDATE OF e SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO doomed FROM held h;
    DELETE FROM retention_left l WHERE l.kind = 'events' AND l.event_id = ANY (doomed);
    INSERT INTO retention_left (kind, event_id)
    SELECT 'events', u.id FROM unnest(unused) AS u (id) WHERE u.id <> ALL (doomed) ORDER BY u.id
    ON CONFLICT DO NOTHING;
    UPDATE retention_state r SET event_horizon = greatest(r.event_horizon, accepted_before)
     WHERE cardinality(doomed) > 0;
    DELETE FROM routing_decisions d WHERE d.event_id = ANY (doomed);
    DELETE FROM events e WHERE e.id = ANY (doomed);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    RETURN deleted;
END
$$;
