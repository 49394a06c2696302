-- Deletes one batch of work that ended longer ago than older_than: Completed sagas with their jobs, and the jobs of
-- DeadLettered and requeued sagas, which stay. It reads finished jobs in the order of idx_job_finished and handles a
-- saga at its last job, so it needs no index of its own. It starts after the given position and returns the position
-- it reached; last_id is null at the end.
--
-- A batch reads max_rows jobs and deletes about as many rows, at most 50 more, in one transaction. Locked rows are
-- skipped until the next run. before is null when the batch could not begin (begin_retention_batch).
--
-- An event may have a later created_at than its delivery, because a producer can set it. Its saga stays until the
-- event is old enough too: retention_horizon() refers to events.
CREATE OR REPLACE FUNCTION prune_finished(
    older_than interval, max_rows integer, after_at timestamptz, after_id bigint, dry_run boolean
)
RETURNS TABLE (
    sagas bigint, jobs bigint, events bigint, before timestamptz, last_at timestamptz, last_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    ended bigint[];
    leaving bigint[];
    held_too bigint[];
    held_jobs bigint[];
    of_events bigint[];
    by_outcome jsonb;
    old_events timestamptz;
BEGIN
    before := begin_retention_batch(older_than, max_rows);
    sagas := 0;
    jobs := 0;
    events := 0;
    IF before IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    WITH finished AS MATERIALIZED (
        SELECT j.id, j.saga_id, j.finished_at
          FROM webhook_delivery_jobs j
         WHERE j.finished_at < before
           AND j.finished_at >= coalesce(after_at, '-infinity')
           AND (j.finished_at > coalesce(after_at, '-infinity') OR j.id > after_id)
         ORDER BY j.finished_at, j.id LIMIT max_rows
    ), judged AS MATERIALIZED (
        SELECT f.id, f.finished_at, saga.id AS saga_id, saga.leaves, coalesce(saga.attempt_count, 0) AS weight
          FROM finished f
          LEFT JOIN LATERAL (
              SELECT s.id, s.attempt_count, s.status::text = 'Completed' AND s.requeued_from IS NULL AS leaves
                FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
               WHERE s.id = f.saga_id
                 AND NOT EXISTS (SELECT FROM webhook_delivery_jobs o WHERE o.saga_id = s.id AND o.id > f.id)
                 AND s.status::text IN ('Completed', 'DeadLettered') AND s.updated_at < before
                 AND (s.status::text = 'DeadLettered' OR s.requeued_from IS NOT NULL
                      OR e.created_at < before)
                 AND NOT EXISTS (SELECT FROM webhook_delivery_jobs o
                                  WHERE o.saga_id = s.id AND o.status::text IN ('Pending', 'Leased'))
          ) AS saga ON true
    ), batch AS MATERIALIZED (
        SELECT * FROM (SELECT j.*, sum(j.weight) OVER (ORDER BY j.finished_at, j.id) - j.weight AS rows_before
                         FROM judged j) AS weighed
         WHERE rows_before < max_rows
    )
    SELECT array_agg(b.saga_id) FILTER (WHERE b.saga_id IS NOT NULL),
           array_agg(b.saga_id) FILTER (WHERE b.leaves),
           max(b.finished_at),
           (array_agg(b.id ORDER BY b.finished_at DESC, b.id DESC))[1]
      INTO ended, leaving, last_at, last_id
      FROM batch b;

    IF dry_run THEN
        SELECT count(*) INTO jobs FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (ended);
        sagas := coalesce(cardinality(leaving), 0);
    ELSIF ended IS NOT NULL THEN
        UPDATE retention_state r SET horizon = greatest(r.horizon, before), moved_at = now();
        SELECT p.looked_at INTO old_events FROM retention_progress p WHERE p.kind = 'events';
        WITH held AS MATERIALIZED (
            SELECT s.id FROM webhook_delivery_sagas s WHERE s.id = ANY (ended)
             ORDER BY s.id FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(h.id) INTO held_too FROM held h;
        WITH doomed AS MATERIALIZED (
            SELECT j.id FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (held_too) ORDER BY j.id FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(d.id) INTO held_jobs FROM doomed d;
        -- A saga is deleted with all its jobs, or not in this batch.
        held_too := ARRAY(
            SELECT h.saga FROM unnest(held_too) AS h (saga)
             WHERE NOT EXISTS (SELECT FROM webhook_delivery_jobs j
                                WHERE j.saga_id = h.saga AND j.id <> ALL (coalesce(held_jobs, '{}')))
             ORDER BY h.saga);
        WITH gone AS (
            DELETE FROM webhook_delivery_jobs j WHERE j.id = ANY (held_jobs) AND j.saga_id = ANY (held_too)
            RETURNING j.status::text
        ), counted AS (
            SELECT status, count(*) AS deleted FROM gone GROUP BY status
        )
        SELECT coalesce(sum(c.deleted), 0), jsonb_object_agg(c.status, c.deleted) INTO jobs, by_outcome FROM counted c;
        PERFORM note_deleted('attempts', by_outcome, before);
        WITH gone AS (
            DELETE FROM webhook_delivery_sagas s WHERE s.id = ANY (leaving) AND s.id = ANY (held_too)
            RETURNING s.event_id
        )
        SELECT count(*), array_agg(DISTINCT g.event_id) INTO sagas, of_events FROM gone g;
        PERFORM note_deleted('deliveries', jsonb_build_object('Completed', sagas), before);
        events := prune_passed_events(of_events, old_events);
        PERFORM note_deleted('events', jsonb_build_object('', events), old_events);
    END IF;
    UPDATE retention_progress p SET looked_at = greatest(p.looked_at, coalesce(last_at, before))
     WHERE p.kind = 'deliveries' AND NOT dry_run;
    RETURN NEXT;
END
$$;
