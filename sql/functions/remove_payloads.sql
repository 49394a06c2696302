-- Removes the payloads of one batch of events that were accepted longer ago than older_than and whose deliveries have all
-- ended, also from their dead letters: first those that an earlier batch had to leave, then those after the place that the
-- last batch reached (retention_progress). The rows stay. A dry run starts after the given position and counts. last_id is
-- null at the end, before is null when the batch could not begin (begin_retention_batch).
CREATE OR REPLACE FUNCTION remove_payloads(
    older_than interval, max_rows integer, after_at timestamptz, after_id bigint, dry_run boolean
)
RETURNS TABLE (payloads bigint, before timestamptz, last_at timestamptz, last_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    found_ids bigint[];
    left_ids bigint[];
    wanted bigint[];
    ready bigint[];
BEGIN
    before := begin_retention_batch(older_than, max_rows);
    payloads := 0;
    IF before IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT dry_run THEN
        SELECT p.looked_at, p.looked_id INTO after_at, after_id FROM retention_progress p WHERE p.kind = 'payloads';
        WITH taken AS (
            DELETE FROM retention_left l
             WHERE l.kind = 'payloads'
               AND l.event_id IN (SELECT o.event_id FROM retention_left o WHERE o.kind = 'payloads'
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
    wanted := ARRAY(SELECT e.id FROM events e
                     WHERE e.id = ANY (left_ids || found_ids) AND e.removed_at IS NULL);
    ready := ARRAY(SELECT w.id FROM unnest(wanted) AS w (id)
                    WHERE NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = w.id)
                      AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                       WHERE g.event_id = w.id AND g.status::text NOT IN ('Completed', 'DeadLettered')));
    IF dry_run THEN
        payloads := cardinality(ready);
        RETURN NEXT;
        RETURN;
    END IF;
    IF cardinality(ready) > 0 THEN
        UPDATE retention_state r SET payload_horizon = greatest(r.payload_horizon, before), moved_at = now();
        ready := lock_content(ready);
        UPDATE events e SET payload = NULL, removed_at = now() WHERE e.id = ANY (ready);
        GET DIAGNOSTICS payloads = ROW_COUNT;
        UPDATE dead_letters d SET payload_snapshot = NULL
         WHERE d.event_id = ANY (ready) AND num_nonnulls(d.payload_snapshot) = 1;
        PERFORM note_deleted('payloads', jsonb_build_object('', payloads), before);
    END IF;
    INSERT INTO retention_left (kind, event_id)
    SELECT 'payloads', w.id FROM unnest(wanted) AS w (id) WHERE w.id <> ALL (ready) ORDER BY w.id;
    UPDATE retention_progress p
       SET looked_at = greatest(p.looked_at, coalesce(last_at, before)),
           looked_id = coalesce(last_id, CASE WHEN p.looked_at >= before THEN p.looked_id ELSE 0 END)
     WHERE p.kind = 'payloads';
    RETURN NEXT;
END
$$;
