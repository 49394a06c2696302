-- Retention (decision 37): finished work that is old enough may be deleted. Never events, dead letters, or what a dead
-- letter still needs: its saga, and the saga that a requeue of it started, so that a second requeue finds it.

-- The one fact that is left of what was deleted. Before this moment Completed sagas, and jobs of sagas that had ended,
-- may be missing; from it on everything is there. Null: nothing was ever deleted.
CREATE TABLE retention_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    horizon timestamptz,
    moved_at timestamptz,
    CONSTRAINT there_is_only_one_row CHECK (only_row)
);

INSERT INTO retention_state DEFAULT VALUES;

CREATE TRIGGER retention_horizon_stays BEFORE DELETE OR TRUNCATE ON retention_state
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('what was deleted stays deleted');
CREATE TRIGGER retention_horizon_moves_on BEFORE UPDATE ON retention_state
    FOR EACH ROW WHEN (
        NEW.horizon IS NULL OR NEW.horizon < OLD.horizon OR NEW.horizon > now() - interval '1 day'
    )
    EXECUTE FUNCTION refuse_change('it only moves on, and stays a day behind');

-- Even the role that may delete deletes nothing else.
CREATE TRIGGER only_completed_sagas_are_pruned BEFORE DELETE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (OLD.status <> 'Completed' OR OLD.requeued_from IS NOT NULL)
    EXECUTE FUNCTION refuse_change('only a Completed saga that no dead letter names is pruned');
CREATE TRIGGER only_finished_jobs_are_pruned BEFORE DELETE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (OLD.status IN ('Pending', 'Leased') OR OLD.applied_at IS NULL)
    EXECUTE FUNCTION refuse_change('only a job whose result was taken is pruned');

-- UPDATE on id is the right to lock rows: nobody can update an id that the database makes.
GRANT UPDATE (id) ON webhook_delivery_sagas, webhook_delivery_jobs TO retention_operator;
GRANT SELECT (id, created_at) ON events TO retention_operator;
GRANT SELECT, UPDATE (horizon, moved_at) ON retention_state TO retention_operator;
GRANT SELECT ON retention_state TO dead_letter_operator;

-- Sagas of events accepted before this moment may be gone, so nobody can say any more who got them; a backfill leaves
-- them alone. Null while nothing was deleted. Who asks keeps the answer true until his transaction ends: no horizon
-- moves meanwhile, and as it moves in the transaction that deletes, nothing is deleted that the asker could miss.
CREATE OR REPLACE FUNCTION retention_horizon() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    moment timestamptz;
BEGIN
    SELECT r.horizon INTO moment FROM retention_state r FOR SHARE;
    RETURN moment;
END
$$;

-- Deletes one batch of what ended longer ago than older_than: Completed sagas with their jobs, and the jobs of
-- DeadLettered and requeued sagas, which stay themselves. The walk goes through finished jobs by their time, on
-- idx_job_finished, and handles a saga at its last job, so it needs no index of its own, and what was deleted is not
-- met again. It begins after the place that the caller gives, and says how far it came; last_job_id is null at the end.
--
-- A batch looks at max_rows jobs, and deletes about as many rows as that, at most 50 more. Killed anywhere it leaves
-- all or nothing. Rows that another holds are passed by, and met the next time.
--
-- An event that bears a later time than its delivery (a producer may write its own) keeps its saga until it is old
-- itself: retention_horizon() speaks of events.
CREATE FUNCTION prune_finished(
    older_than interval, max_rows integer, after_finished_at timestamptz, after_job_id bigint, dry_run boolean
)
RETURNS TABLE (sagas bigint, jobs bigint, before timestamptz, last_finished_at timestamptz, last_job_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    ended bigint[];
    leaving bigint[];
    held_too bigint[];
    held_jobs bigint[];
BEGIN
    IF older_than < interval '1 day' OR max_rows NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'prune_finished: at least 1 day old, and 1 to 100000 rows in a batch'
            USING ERRCODE = 'HS001';
    END IF;
    before := now() - older_than;
    sagas := 0;
    jobs := 0;

    WITH finished AS MATERIALIZED (
        SELECT j.id, j.saga_id, j.attempt_number, j.finished_at
          FROM webhook_delivery_jobs j
         WHERE j.finished_at < now() - older_than
           AND j.finished_at >= coalesce(after_finished_at, '-infinity')
           AND (j.finished_at > coalesce(after_finished_at, '-infinity') OR j.id > after_job_id)
         ORDER BY j.finished_at, j.id LIMIT max_rows
    ), judged AS MATERIALIZED (
        SELECT f.id, f.finished_at, saga.id AS saga_id, saga.leaves, coalesce(saga.attempt_count, 0) AS weight
          FROM finished f
          LEFT JOIN LATERAL (
              SELECT s.id, s.attempt_count, s.status::text = 'Completed' AND s.requeued_from IS NULL AS leaves
                FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
               WHERE s.id = f.saga_id AND s.attempt_count = f.attempt_number
                 AND s.status::text IN ('Completed', 'DeadLettered') AND s.updated_at < now() - older_than
                 AND (s.status::text = 'DeadLettered' OR s.requeued_from IS NOT NULL
                      OR e.created_at < now() - older_than)
                 AND NOT EXISTS (SELECT FROM webhook_delivery_jobs o
                                  WHERE o.saga_id = s.id AND o.applied_at IS NULL)
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
      INTO ended, leaving, last_finished_at, last_job_id
      FROM batch b;

    IF dry_run THEN
        SELECT count(*) INTO jobs FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (ended);
        sagas := coalesce(cardinality(leaving), 0);
    ELSIF ended IS NOT NULL THEN
        -- Waits for whoever has asked for the horizon and not ended yet; then other prunes wait for this one.
        UPDATE retention_state r SET horizon = greatest(r.horizon, now() - older_than), moved_at = now();
        WITH held AS MATERIALIZED (
            SELECT s.id FROM webhook_delivery_sagas s WHERE s.id = ANY (ended)
             ORDER BY s.id FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(h.id) INTO held_too FROM held h;
        WITH doomed AS MATERIALIZED (
            SELECT j.id FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (held_too) ORDER BY j.id FOR UPDATE SKIP LOCKED
        )
        SELECT array_agg(d.id) INTO held_jobs FROM doomed d;
        -- A saga goes with all its jobs, or not now.
        held_too := ARRAY(
            SELECT h.saga FROM unnest(held_too) AS h (saga)
             WHERE NOT EXISTS (SELECT FROM webhook_delivery_jobs j
                                WHERE j.saga_id = h.saga AND j.id <> ALL (coalesce(held_jobs, '{}')))
             ORDER BY h.saga);
        DELETE FROM webhook_delivery_jobs j WHERE j.id = ANY (held_jobs) AND j.saga_id = ANY (held_too);
        GET DIAGNOSTICS jobs = ROW_COUNT;
        DELETE FROM webhook_delivery_sagas s WHERE s.id = ANY (leaving) AND s.id = ANY (held_too);
        GET DIAGNOSTICS sagas = ROW_COUNT;
    END IF;
    RETURN NEXT;
END
$$;

GRANT EXECUTE ON FUNCTION retention_horizon(),
    prune_finished(interval, integer, timestamptz, bigint, boolean) TO dead_letter_operator;

-- Since when the pipeline is at work on this database; null while it is at rest. The audit judges how long sagas and
-- leases wait by it: in a database that was restored from a dump, or was stopped, they wait because nobody works.
CREATE TABLE work_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    at_work_since timestamptz,
    CONSTRAINT there_is_one_state CHECK (only_row)
);

GRANT SELECT, UPDATE (at_work_since) ON work_state TO lease_cleaner;
GRANT SELECT ON work_state TO dead_letter_operator;

-- The guards let nobody delete but retention_operator, so that role has to own the function. A dump that is restored
-- as another owner loses that; `hooksaga migrate` calls this each time. A restore is also where nothing is at work yet,
-- whatever was at the time of the dump. Who is no superuser needs the role and the schema for a moment.
CREATE FUNCTION give_retention_its_owner() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    pruning regprocedure := 'prune_finished(interval, integer, timestamptz, bigint, boolean)'::regprocedure;
    needs_rights boolean := NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
BEGIN
    IF (SELECT proowner FROM pg_proc WHERE oid = pruning) = 'retention_operator'::regrole THEN
        RETURN;
    END IF;
    IF needs_rights THEN
        EXECUTE format('GRANT retention_operator TO %I WITH INHERIT FALSE, SET TRUE', current_user);
    END IF;
    GRANT CREATE ON SCHEMA public TO retention_operator;
    EXECUTE format('ALTER FUNCTION %s OWNER TO retention_operator', pruning);
    REVOKE CREATE ON SCHEMA public FROM retention_operator;
    IF needs_rights THEN
        EXECUTE format('REVOKE retention_operator FROM %I', current_user);
    END IF;
    UPDATE work_state SET at_work_since = NULL;
END
$$;

REVOKE EXECUTE ON FUNCTION retention_horizon(), give_retention_its_owner(),
    prune_finished(interval, integer, timestamptz, bigint, boolean) FROM PUBLIC;

DO $$ BEGIN PERFORM give_retention_its_owner(); END $$;

INSERT INTO work_state (at_work_since) VALUES ('-infinity');

-- `hooksaga doctor` says which migrations ran, through the admin function too.
GRANT SELECT (name) ON hooksaga_migrations TO dead_letter_operator;
