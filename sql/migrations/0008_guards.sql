-- What the database refuses, whoever asks. The legal moves are those of
-- shared/hooksaga/core/saga.py; a test tries every pair against both. Row triggers carry their rule in WHEN, so a
-- legal move never enters PL/pgSQL. HS001 is the SQLSTATE of every refusal.

CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'HS001';
END
$$;

CREATE TRIGGER events_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('events are immutable');
CREATE TRIGGER dead_letters_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('dead letters are immutable');
CREATE TRIGGER subscriptions_are_never_deleted BEFORE DELETE OR TRUNCATE ON subscriptions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a subscription is deactivated, never deleted');
CREATE TRIGGER sagas_are_never_truncated BEFORE TRUNCATE ON webhook_delivery_sagas
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('sagas are deleted by retention only');
CREATE TRIGGER jobs_are_never_truncated BEFORE TRUNCATE ON webhook_delivery_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('jobs are deleted by retention only');
CREATE TRIGGER sagas_are_never_deleted BEFORE DELETE ON webhook_delivery_sagas
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('sagas are deleted by retention only');
CREATE TRIGGER jobs_are_never_deleted BEFORE DELETE ON webhook_delivery_jobs
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('jobs are deleted by retention only');

CREATE FUNCTION refuse_row() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION '% starts as Pending and untried', TG_ARGV[0] USING ERRCODE = 'HS001';
    END IF;
    RAISE EXCEPTION '% % cannot go from % to %: %', TG_ARGV[0], OLD.id, OLD.status, NEW.status, TG_ARGV[1]
        USING ERRCODE = 'HS001';
END
$$;

-- Sagas. Terminal states never change in any column.
CREATE TRIGGER saga_starts_pending BEFORE INSERT ON webhook_delivery_sagas
    FOR EACH ROW WHEN (NEW.status <> 'Pending' OR NEW.attempt_count <> 0 OR NEW.final_error_code IS NOT NULL)
    EXECUTE FUNCTION refuse_row('saga');

CREATE TRIGGER saga_moves_are_legal BEFORE UPDATE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (
        OLD.status IN ('Completed', 'DeadLettered')
        OR NOT (
            OLD.status = NEW.status
            OR OLD.status = 'Pending' AND NEW.status IN ('InProgress', 'DeadLettered')
            OR OLD.status = 'InProgress' AND NEW.status IN ('Completed', 'PendingRetry', 'DeadLettered')
            OR OLD.status = 'PendingRetry' AND NEW.status IN ('InProgress', 'DeadLettered')
        )
    )
    EXECUTE FUNCTION refuse_row('saga', 'not a legal move');

-- attempt_count grows by one when a job's result is taken, and never otherwise.
CREATE TRIGGER saga_facts_hold BEFORE UPDATE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (
        NEW.attempt_count <> OLD.attempt_count
            + CASE WHEN OLD.status = 'InProgress' AND NEW.status <> 'InProgress' THEN 1 ELSE 0 END
        OR (NEW.id, NEW.event_id, NEW.subscription_id, NEW.created_at)
            <> (OLD.id, OLD.event_id, OLD.subscription_id, OLD.created_at)
        OR NEW.requeued_from IS DISTINCT FROM OLD.requeued_from
    )
    EXECUTE FUNCTION refuse_row('saga', 'its pair never changes, and attempt_count counts results only');

-- What a saga names is there. Events, subscriptions and dead letters never go and keep their ids, so a plain read is
-- proof. A foreign key takes a lock on the row of the parent, and every batch would wait for whoever has locked that
-- (decision 59). Scalar subqueries, because no planner makes anything else of them than a look by primary key.
CREATE FUNCTION refuse_sagas_of_nothing() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
    orphan bigint;
BEGIN
    SELECT n.id INTO orphan
      FROM new_sagas n
     WHERE (SELECT e.id FROM events e WHERE e.id = n.event_id) IS NULL
        OR (SELECT s.id FROM subscriptions s WHERE s.id = n.subscription_id) IS NULL
        OR n.requeued_from IS NOT NULL AND (SELECT d.id FROM dead_letters d WHERE d.id = n.requeued_from) IS NULL
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'saga % names an event, a subscription or a dead letter that does not exist', orphan
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER sagas_name_what_is_there AFTER INSERT ON webhook_delivery_sagas
    REFERENCING NEW TABLE AS new_sagas
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_sagas_of_nothing();

-- Jobs. A finished job never changes, but for applied_at, once. A claim takes a Pending job only, counts
-- itself, and names its worker and the end of its lease.
CREATE TRIGGER job_starts_pending BEFORE INSERT ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        NEW.status <> 'Pending' OR NEW.claim_count <> 0 OR NEW.lost_leases <> 0 OR NEW.worker_id IS NOT NULL
        OR NEW.lease_until IS NOT NULL OR NEW.finished_at IS NOT NULL OR NEW.applied_at IS NOT NULL
    )
    EXECUTE FUNCTION refuse_row('job');

CREATE TRIGGER job_moves_are_legal BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        NOT (
            OLD.status = NEW.status AND OLD.status <> 'Leased'
            OR OLD.status = 'Pending' AND NEW.status = 'Leased'
            OR OLD.status = 'Leased' AND NEW.status IN ('Pending', 'Completed', 'Failed')
        )
    )
    EXECUTE FUNCTION refuse_row('job', 'not a legal move');

CREATE TRIGGER job_facts_hold BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        (NEW.id, NEW.saga_id, NEW.subscription_id, NEW.attempt_number, NEW.attempt_at, NEW.created_at)
            <> (OLD.id, OLD.saga_id, OLD.subscription_id, OLD.attempt_number, OLD.attempt_at, OLD.created_at)
        OR NEW.claim_count <> OLD.claim_count
            + CASE WHEN OLD.status = 'Pending' AND NEW.status = 'Leased' THEN 1 ELSE 0 END
        OR NEW.lost_leases - OLD.lost_leases NOT BETWEEN 0 AND
            CASE WHEN OLD.status = 'Leased' AND NEW.status IN ('Pending', 'Failed') THEN 1 ELSE 0 END
        OR NEW.status = 'Leased' AND (NEW.lease_until IS NULL OR NEW.worker_id IS NULL)
        OR NEW.status = 'Completed' AND NEW.response_status IS NULL
        OR NEW.status = 'Failed' AND NEW.error_code IS NULL
        OR OLD.status IN ('Pending', 'Leased') AND NEW.applied_at IS NOT NULL
    )
    EXECUTE FUNCTION refuse_row('job', 'its saga and attempt never change, and a claim or a result must be whole');

CREATE TRIGGER finished_job_never_changes BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        OLD.status IN ('Completed', 'Failed')
        AND NOT (
            OLD.applied_at IS NULL AND NEW.applied_at IS NOT NULL
            AND (NEW.status, NEW.claim_count, NEW.response_truncated, NEW.reconnected)
                = (OLD.status, OLD.claim_count, OLD.response_truncated, OLD.reconnected)
            AND (NEW.lease_until, NEW.response_status, NEW.error_code, NEW.worker_id, NEW.dispatched_at,
                 NEW.leased_at, NEW.finished_at, NEW.duration_ms, NEW.response_body, NEW.retry_after_seconds,
                 NEW.resolved_ip)
                IS NOT DISTINCT FROM
                (OLD.lease_until, OLD.response_status, OLD.error_code, OLD.worker_id, OLD.dispatched_at,
                 OLD.leased_at, OLD.finished_at, OLD.duration_ms, OLD.response_body, OLD.retry_after_seconds,
                 OLD.resolved_ip)
        )
    )
    EXECUTE FUNCTION refuse_row('job', 'a finished job is history');

-- The lease cleaner may not write finished_at, and needs not.
CREATE FUNCTION stamp_finished_at() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.finished_at := clock_timestamp();
    RETURN NEW;
END
$$;

CREATE TRIGGER a_finished_job_has_its_time BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (OLD.status = 'Leased' AND NEW.status IN ('Completed', 'Failed') AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION stamp_finished_at();

-- No job for a saga that has ended, and none for another subscription than the saga's. FOR SHARE
-- makes a saga that is ending at this moment end first.
CREATE FUNCTION refuse_jobs_of_ended_sagas() RETURNS trigger
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

CREATE TRIGGER no_jobs_for_ended_sagas AFTER INSERT ON webhook_delivery_jobs
    REFERENCING NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_jobs_of_ended_sagas();

-- A dead letter tells of a saga that is dead, truthfully.
CREATE FUNCTION refuse_untrue_dead_letters() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    untrue bigint;
BEGIN
    SELECT n.saga_id INTO untrue
      FROM new_dead_letters n
      JOIN webhook_delivery_sagas s ON s.id = n.saga_id
      JOIN events e ON e.id = s.event_id
     WHERE s.status <> 'DeadLettered' OR s.event_id <> n.event_id OR s.subscription_id <> n.subscription_id
        OR e.tenant_id <> n.tenant_id OR e.event_type <> n.event_type
        OR e.payload::text <> n.payload_snapshot::text
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'dead letter of saga % does not tell what happened', untrue USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER dead_letters_are_true AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS new_dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_untrue_dead_letters();
