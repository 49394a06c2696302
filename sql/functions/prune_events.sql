-- Deletes one batch of events that were accepted longer ago than older_than and to which no delivery refers any more,
-- with their routing decisions: first those that an earlier batch had to leave, then those after the place that the last
-- batch reached (retention_progress). An event that still has deliveries or dead letters is passed: the batch that
-- deletes the last of them deletes it. A dry run starts after the given position and counts. last_id is null at the end, before is null
-- when the batch could not begin (begin_retention_batch).
CREATE OR REPLACE FUNCTION prune_events(
    older_than interval, max_rows integer, after_at timestamptz, after_id bigint, dry_run boolean
)
RETURNS TABLE (events bigint, before timestamptz, last_at timestamptz, last_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    found_ids bigint[];
    left_ids bigint[];
BEGIN
    before := begin_retention_batch(older_than, max_rows);
    events := 0;
    IF before IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT dry_run THEN
        SELECT p.looked_at, p.looked_id INTO after_at, after_id FROM retention_progress p WHERE p.kind = 'events';
        WITH taken AS (
            DELETE FROM retention_left l
             WHERE l.kind = 'events'
               AND l.event_id IN (SELECT o.event_id FROM retention_left o WHERE o.kind = 'events'
                                   ORDER BY o.event_id LIMIT max_rows)
            RETURNING l.event_id
        )
        SELECT array_agg(t.event_id) INTO left_ids FROM taken t;
    END IF;
    WITH batch AS MATERIALIZED (
        SELECT e.id, e.created_at FROM events e
         WHERE e.created_at < before AND e.created_at >= coalesce(after_at, '-infinity')
           AND (e.created_at > coalesce(after_at, '-infinity') OR e.id > after_id)
         ORDER BY e.created_at, e.id LIMIT max_rows
    )
    SELECT array_agg(b.id), max(b.created_at), (array_agg(b.id ORDER BY b.created_at DESC, b.id DESC))[1]
      INTO found_ids, last_at, last_id FROM batch b;
    IF dry_run THEN
        SELECT count(*) INTO events FROM unnest(found_ids) AS f (id)
         WHERE (SELECT g.id FROM webhook_delivery_sagas g WHERE g.event_id = f.id LIMIT 1) IS NULL
           AND NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = f.id);
    ELSE
        IF found_ids IS NOT NULL OR left_ids IS NOT NULL THEN
            UPDATE retention_state r SET event_horizon = greatest(r.event_horizon, before), moved_at = now();
            events := prune_passed_events(left_ids || found_ids, before);
            PERFORM note_deleted('events', jsonb_build_object('', events), before);
        END IF;
        UPDATE retention_progress p
           SET looked_at = greatest(p.looked_at, coalesce(last_at, before)),
               looked_id = coalesce(last_id, CASE WHEN p.looked_at >= before THEN p.looked_id ELSE 0 END)
         WHERE p.kind = 'events';
    END IF;
    RETURN NEXT;
END
$$;
