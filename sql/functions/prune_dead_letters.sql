-- Deletes one batch of dead letters that failed longer ago than older_than. A dead letter goes with its whole pair of
-- event and subscription: all deliveries of the pair with their attempts and dead letters, when the last of them ended
-- longer ago than older_than. So no requeue and no delivery remains of a dead letter that is gone. It starts after the
-- given position and returns the position that it reached; last_id is null at the end.
--
-- A dead letter has up to 50 attempts and may have been requeued, so a batch reads a tenth of max_rows dead letters.
-- Locked rows are skipped until the next run. before is null when the batch could not begin (begin_retention_batch).
CREATE OR REPLACE FUNCTION prune_dead_letters(
    older_than interval, max_rows integer, after_at timestamptz, after_id bigint, dry_run boolean
)
RETURNS TABLE (
    dead_letters bigint, sagas bigint, jobs bigint, events bigint, before timestamptz, last_at timestamptz, last_id bigint
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    letters bigint[];
    ended bigint[];
    of_events bigint[];
    by_outcome jsonb;
    old_events timestamptz;
BEGIN
    before := begin_retention_batch(older_than, max_rows);
    dead_letters := 0;
    sagas := 0;
    jobs := 0;
    events := 0;
    IF before IS NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;

    WITH read AS MATERIALIZED (
        SELECT d.id, d.failed_at, d.event_id, d.subscription_id FROM dead_letters d
         WHERE d.failed_at < before AND d.failed_at >= coalesce(after_at, '-infinity')
           AND (d.failed_at > coalesce(after_at, '-infinity') OR d.id > after_id)
         ORDER BY d.failed_at, d.id LIMIT greatest(max_rows / 10, 1)
    ), pair AS MATERIALIZED (
        SELECT DISTINCT r.event_id, r.subscription_id FROM read r
    ), leaving AS MATERIALIZED (
        SELECT whole.ids
          FROM pair p
          JOIN events e ON e.id = p.event_id AND e.created_at < before
         CROSS JOIN LATERAL (
              SELECT array_agg(g.id) AS ids,
                     bool_and(g.status::text IN ('Completed', 'DeadLettered') AND g.updated_at < before
                              AND NOT EXISTS (SELECT FROM webhook_delivery_jobs j
                                               WHERE j.saga_id = g.id AND j.status::text IN ('Pending', 'Leased'))
                              AND NOT EXISTS (SELECT FROM dead_letters d
                                               WHERE d.saga_id = g.id
                                                 AND (d.failed_at >= before
                                                      OR EXISTS (SELECT FROM operational_outbox o
                                                                  WHERE o.dead_letter_id = d.id)))) AS is_over
                FROM webhook_delivery_sagas g
               WHERE g.event_id = p.event_id AND g.subscription_id = p.subscription_id) AS whole
         WHERE whole.is_over
    )
    SELECT (SELECT array_agg(id) FROM leaving CROSS JOIN LATERAL unnest(leaving.ids) AS u (id)),
           (SELECT max(failed_at) FROM read),
           (SELECT id FROM read ORDER BY failed_at DESC, id DESC LIMIT 1)
      INTO ended, last_at, last_id;

    IF dry_run THEN
        SELECT count(*) INTO dead_letters FROM dead_letters d WHERE d.saga_id = ANY (ended);
        SELECT count(*) INTO jobs FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (ended);
        sagas := coalesce(cardinality(ended), 0);
    ELSIF ended IS NOT NULL THEN
        UPDATE retention_state r SET horizon = greatest(r.horizon, before), moved_at = now();
        SELECT p.looked_at INTO old_events FROM retention_progress p WHERE p.kind = 'events';
        ended := lock_whole_pairs(ended);
        WITH gone AS (
            DELETE FROM dead_letters d WHERE d.saga_id = ANY (ended)
            RETURNING coalesce(d.final_error_code, '') AS outcome
        ), counted AS (
            SELECT outcome, count(*) AS deleted FROM gone GROUP BY outcome
        )
        SELECT coalesce(sum(c.deleted), 0), jsonb_object_agg(c.outcome, c.deleted) INTO dead_letters, by_outcome
          FROM counted c;
        PERFORM note_deleted('dead_letters', by_outcome, before);
        WITH gone AS (
            DELETE FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (ended) RETURNING j.status::text
        ), counted AS (
            SELECT status, count(*) AS deleted FROM gone GROUP BY status
        )
        SELECT coalesce(sum(c.deleted), 0), jsonb_object_agg(c.status, c.deleted) INTO jobs, by_outcome FROM counted c;
        PERFORM note_deleted('attempts', by_outcome, before);
        WITH gone AS (
            DELETE FROM webhook_delivery_sagas s WHERE s.id = ANY (ended) RETURNING s.event_id, s.status::text
        ), counted AS (
            SELECT status, count(*) AS deleted FROM gone GROUP BY status
        )
        SELECT coalesce(sum(c.deleted), 0), jsonb_object_agg(c.status, c.deleted),
               (SELECT array_agg(DISTINCT event_id) FROM gone)
          INTO sagas, by_outcome, of_events FROM counted c;
        PERFORM note_deleted('deliveries', by_outcome, before);
        events := prune_passed_events(of_events, old_events);
        PERFORM note_deleted('events', jsonb_build_object('', events), old_events);
    END IF;
    UPDATE retention_progress p SET looked_at = greatest(p.looked_at, coalesce(last_at, before))
     WHERE p.kind = 'dead_letters' AND NOT dry_run;
    RETURN NEXT;
END
$$;
