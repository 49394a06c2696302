-- Bulk operations: many dead letters requeued, or many old events sent to one subscription, at a steady rate. The
-- rows are the memory of it: who wanted what and why, how far it is. Whoever steps it next goes on from there.
CREATE TYPE bulk_kind AS ENUM ('requeue', 'backfill');
CREATE TYPE bulk_status AS ENUM ('Running', 'Paused', 'Stopped', 'Completed');

-- until_id: dead letters (or events) with a greater id are not part of it, so what dies again is not requeued for
-- ever. last_slot_at: the next_attempt_at of the newest saga that it has started; the next one comes
-- 1 / rate_per_second later, whoever starts it. tenant_id null: of all tenants.
CREATE TABLE bulk_operations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind bulk_kind NOT NULL,
    status bulk_status NOT NULL DEFAULT 'Running',
    tenant_id varchar(100),
    filter jsonb NOT NULL,
    rate_per_second double precision NOT NULL,
    reason varchar(500) NOT NULL DEFAULT '',
    created_by varchar(100) NOT NULL,
    created_by_key_id bigint REFERENCES api_keys (id),
    until_id bigint NOT NULL,
    matched bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    steps bigint NOT NULL DEFAULT 0,
    last_slot_at timestamptz,
    last_step_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT rate_in_range CHECK (rate_per_second BETWEEN 0.01 AND 1000),
    CONSTRAINT filter_is_an_object CHECK (jsonb_typeof(filter) = 'object'),
    CONSTRAINT counts_are_not_negative CHECK (matched >= 0 AND done >= 0 AND skipped >= 0),
    CONSTRAINT ended_operations_have_their_time CHECK (
        (status IN ('Stopped', 'Completed')) = (finished_at IS NOT NULL))
);

-- A repeated call finds the operation that the first one started.
CREATE UNIQUE INDEX uniq_bulk_open ON bulk_operations (kind, coalesce(tenant_id, ''), filter)
    WHERE status IN ('Running', 'Paused');
CREATE INDEX idx_bulk_running ON bulk_operations (last_step_at NULLS FIRST, id) WHERE status = 'Running';

-- One lane for each subscription of an operation. Lanes are taken in turn, and each has its own place, so one that is
-- inactive, or slow, or flooded, never stands in the way of another. after_at counts for events only, whose order is
-- (created_at, id); dead letters go by id.
CREATE TABLE bulk_operation_lanes (
    operation_id bigint NOT NULL REFERENCES bulk_operations (id),
    subscription_id bigint NOT NULL,
    turn bigint NOT NULL DEFAULT 0,
    after_at timestamptz NOT NULL DEFAULT '-infinity',
    after_id bigint NOT NULL DEFAULT 0,
    matched bigint NOT NULL,
    done bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    finished boolean NOT NULL DEFAULT false,
    PRIMARY KEY (operation_id, subscription_id)
);

CREATE INDEX idx_lane_turn ON bulk_operation_lanes (operation_id, turn, subscription_id) WHERE NOT finished;

-- Which operation started a saga; null for all others.
ALTER TABLE webhook_delivery_sagas ADD COLUMN bulk_operation_id bigint;
ALTER TABLE webhook_delivery_sagas
    ADD CONSTRAINT started_by_a_bulk_operation FOREIGN KEY (bulk_operation_id) REFERENCES bulk_operations (id) NOT VALID;

-- What a step asks of each lane: how much of what was started for its subscription is under way or waits for a retry.
CREATE INDEX idx_saga_bulk_open ON webhook_delivery_sagas (subscription_id)
    WHERE bulk_operation_id IS NOT NULL AND status IN ('InProgress', 'PendingRetry');

-- As sagas_name_what_is_there: a subscription that somebody has locked stops no operation from beginning.
CREATE FUNCTION refuse_lanes_of_nothing() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
DECLARE
    orphan bigint;
BEGIN
    SELECT n.subscription_id INTO orphan FROM new_lanes n
     WHERE (SELECT s.id FROM subscriptions s WHERE s.id = n.subscription_id) IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'a lane names subscription %, which does not exist', orphan
            USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER lanes_name_what_is_there AFTER INSERT ON bulk_operation_lanes
    REFERENCING NEW TABLE AS new_lanes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_lanes_of_nothing();

-- Guards. The moves are those of shared/hooksaga/core/bulk.py; a test tries every pair against both.
CREATE TRIGGER saga_keeps_its_operation BEFORE UPDATE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (NEW.bulk_operation_id IS DISTINCT FROM OLD.bulk_operation_id)
    EXECUTE FUNCTION refuse_row('saga', 'its bulk operation never changes');

CREATE TRIGGER bulk_operation_moves_are_legal BEFORE UPDATE ON bulk_operations
    FOR EACH ROW WHEN (
        NOT (
            OLD.status = 'Running'
            OR OLD.status = 'Paused' AND NEW.status IN ('Paused', 'Running', 'Stopped')
        )
    )
    EXECUTE FUNCTION refuse_row('bulk operation', 'not a legal move');

CREATE TRIGGER bulk_operation_facts_hold BEFORE UPDATE ON bulk_operations
    FOR EACH ROW WHEN (
        (NEW.id, NEW.kind, NEW.filter, NEW.reason, NEW.created_by, NEW.until_id, NEW.created_at)
            <> (OLD.id, OLD.kind, OLD.filter, OLD.reason, OLD.created_by, OLD.until_id, OLD.created_at)
        OR (NEW.tenant_id, NEW.created_by_key_id) IS DISTINCT FROM (OLD.tenant_id, OLD.created_by_key_id)
        OR NEW.matched < OLD.matched OR NEW.done < OLD.done OR NEW.skipped < OLD.skipped
    )
    EXECUTE FUNCTION refuse_row('bulk operation', 'who wanted what never changes, and counts only grow');

CREATE TRIGGER bulk_operations_are_kept BEFORE DELETE OR TRUNCATE ON bulk_operations
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of who wanted what');
CREATE TRIGGER bulk_operation_lanes_are_kept BEFORE DELETE OR TRUNCATE ON bulk_operation_lanes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of how far it came');

-- Sagas of events accepted before this moment may be gone, so nobody can say any more who got them, and a backfill
-- leaves them alone. Null while nothing deletes sagas. Whatever deletes them replaces this function, and moves the
-- moment on, committed, before it deletes.
CREATE FUNCTION retention_horizon() RETURNS timestamptz
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
    SELECT NULL::timestamptz
$$;

-- What a filter means now, by subscription: the dry run, and the lanes of a new operation. With newest_id null it
-- counts all. Every plan is made for the filter at hand. What an operator canceled is meant only where the filter names
-- that error code: a requeue of everything else must not undo it.
CREATE FUNCTION count_bulk_lanes(wanted_kind bulk_kind, tenant varchar, wanted jsonb, newest_id bigint)
RETURNS TABLE (subscription_id bigint, matched bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    IF wanted_kind = 'requeue' THEN
        RETURN QUERY
            SELECT d.subscription_id, count(*) FROM dead_letters d
             WHERE (newest_id IS NULL OR d.id <= newest_id)
               AND (tenant IS NULL OR d.tenant_id = tenant)
               AND (wanted ->> 'subscription_id' IS NULL OR d.subscription_id = (wanted ->> 'subscription_id')::bigint)
               AND (wanted ->> 'event_type' IS NULL OR d.event_type = wanted ->> 'event_type')
               AND (wanted ->> 'error_code' IS NULL OR d.final_error_code = wanted ->> 'error_code')
               AND (wanted ->> 'error_code' = 'canceled' OR d.final_error_code IS DISTINCT FROM 'canceled')
               AND (wanted ->> 'failed_after' IS NULL OR d.failed_at >= (wanted ->> 'failed_after')::timestamptz)
               AND (wanted ->> 'failed_before' IS NULL OR d.failed_at < (wanted ->> 'failed_before')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)
             GROUP BY d.subscription_id;
    ELSE
        RETURN QUERY
            SELECT s.id, count(*) FROM subscriptions s
              JOIN events e ON e.tenant_id = s.tenant_id AND e.event_type = wanted ->> 'event_type'
             WHERE s.id = (wanted ->> 'subscription_id')::bigint
               AND (newest_id IS NULL OR e.id <= newest_id)
               AND e.created_at >= (wanted ->> 'since')::timestamptz
               AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                WHERE g.event_id = e.id AND g.subscription_id = s.id)
             GROUP BY s.id;
    END IF;
END
$$;

-- Starts an operation, or finds the same one that has not ended. Two calls at once wait for each other at the index.
CREATE FUNCTION start_bulk_operation(
    wanted_kind bulk_kind, tenant varchar, wanted jsonb, rate double precision, why varchar, key_id bigint, caller varchar
)
RETURNS TABLE (id bigint, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bulk_operations;
BEGIN
    LOOP
        INSERT INTO bulk_operations (kind, tenant_id, filter, rate_per_second, reason, created_by, created_by_key_id,
                                     until_id)
        VALUES (wanted_kind, tenant, wanted, rate, why,
                coalesce((SELECT k.name FROM api_keys k WHERE k.id = key_id), caller), key_id,
                coalesce(CASE wanted_kind WHEN 'requeue' THEN (SELECT max(d.id) FROM dead_letters d)
                                          ELSE (SELECT max(e.id) FROM events e) END, 0))
        ON CONFLICT (kind, coalesce(tenant_id, ''), filter) WHERE status IN ('Running', 'Paused') DO NOTHING
        RETURNING * INTO made;
        EXIT WHEN made.id IS NOT NULL;
        RETURN QUERY
            SELECT o.id, false FROM bulk_operations o
             WHERE o.kind = wanted_kind AND coalesce(o.tenant_id, '') = coalesce(tenant, '') AND o.filter = wanted
               AND o.status IN ('Running', 'Paused');
        IF FOUND THEN
            RETURN;
        END IF;  -- it ended between the two statements
    END LOOP;
    INSERT INTO bulk_operation_lanes (operation_id, subscription_id, matched)
    SELECT made.id, l.subscription_id, l.matched
      FROM count_bulk_lanes(wanted_kind, tenant, wanted, made.until_id) AS l;
    UPDATE bulk_operations o
       SET matched = (SELECT coalesce(sum(l.matched), 0) FROM bulk_operation_lanes l WHERE l.operation_id = made.id)
     WHERE o.id = made.id;
    RETURN QUERY SELECT made.id, true;
END
$$;

-- The next things of one lane, in its order. This and count_bulk_lanes mean the same by a filter.
CREATE FUNCTION find_bulk_candidates(
    op bulk_operations, lane_subscription bigint, after_at timestamptz, after_id bigint, most integer
)
RETURNS TABLE (id bigint, event_id bigint, dead_letter_id bigint, accepted_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    wanted jsonb := op.filter;
    since timestamptz;
BEGIN
    IF op.kind = 'requeue' THEN
        RETURN QUERY
            SELECT d.id, d.event_id, d.id, '-infinity'::timestamptz FROM dead_letters d
             WHERE d.subscription_id = lane_subscription AND d.id > after_id AND d.id <= op.until_id
               AND (op.tenant_id IS NULL OR d.tenant_id = op.tenant_id)
               AND (wanted ->> 'event_type' IS NULL OR d.event_type = wanted ->> 'event_type')
               AND (wanted ->> 'error_code' IS NULL OR d.final_error_code = wanted ->> 'error_code')
               AND (wanted ->> 'error_code' = 'canceled' OR d.final_error_code IS DISTINCT FROM 'canceled')
               AND (wanted ->> 'failed_after' IS NULL OR d.failed_at >= (wanted ->> 'failed_after')::timestamptz)
               AND (wanted ->> 'failed_before' IS NULL OR d.failed_at < (wanted ->> 'failed_before')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)
             ORDER BY d.id LIMIT most;
    ELSE
        since := greatest((wanted ->> 'since')::timestamptz, retention_horizon(), after_at);
        RETURN QUERY
            SELECT e.id, e.id, NULL::bigint, e.created_at FROM events e
             WHERE e.event_type = wanted ->> 'event_type' AND e.tenant_id = op.tenant_id
               AND e.created_at >= since AND (e.created_at > after_at OR e.id > after_id)
               AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
               AND e.id <= op.until_id
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                WHERE g.event_id = e.id AND g.subscription_id = lane_subscription)
             ORDER BY e.created_at, e.id LIMIT most;
    END IF;
END
$$;

-- One step of one Running operation, the one that was stepped longest ago, apart from those in passed_by: starts
-- sagas whose next_attempt_at lie 1 / rate_per_second apart, until the horizon is full. No row when there is nothing
-- to step. Who comes at the same time passes the locked operation by, so the rate holds for any number of steppers;
-- who dies leaves nothing, or all of it. A lane that somebody has locked is passed by too, and served later.
--
-- A lane whose subscription takes nothing any more is finished, and what is left of it counts as skipped.
-- One with max_open sagas of bulk operations under way, or waiting for a retry, has to wait; the others share the
-- slots evenly. The sagas are inserted in the order of what they come from, as every other stage does.
CREATE FUNCTION step_bulk_operation(
    passed_by bigint[], horizon_seconds double precision, max_sagas integer, max_lanes integer, max_open integer
)
RETURNS TABLE (operation_id bigint, status bulk_status, saga_ids bigint[], delays double precision[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    op bulk_operations;
    gap interval;
    first_slot timestamptz;
    free integer;
    newest_slot timestamptz;
    now_done bigint;
    now_skipped bigint;
BEGIN
    SELECT o.* INTO op FROM bulk_operations o
     WHERE o.status = 'Running' AND o.id <> ALL (passed_by)
       AND coalesce(o.last_slot_at + ceil(1e6 / o.rate_per_second) * interval '1 microsecond', now())
           < now() + make_interval(secs => horizon_seconds)
     ORDER BY o.last_step_at NULLS FIRST, o.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF op.kind = 'backfill' THEN
        PERFORM FROM retention_state FOR SHARE SKIP LOCKED;
        IF NOT FOUND THEN  -- a prune is at work; nothing was started, so the caller comes again at the next poll
            operation_id := op.id;
            status := op.status;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    gap := ceil(1e6 / op.rate_per_second) * interval '1 microsecond';
    first_slot := greatest(op.last_slot_at + gap, now());
    free := least(max_sagas, ceil(
        extract(epoch FROM now() + make_interval(secs => horizon_seconds) - first_slot) / extract(epoch FROM gap)));

    WITH looked_at AS MATERIALIZED (
        SELECT l.*,
               s.active AND s.verified AND s.deleted_at IS NULL
                   AND (op.kind = 'requeue' OR s.event_type = op.filter ->> 'event_type') AS takes,
               max_open <= (
                   SELECT count(*) FROM (
                       SELECT FROM webhook_delivery_sagas g
                        WHERE g.subscription_id = l.subscription_id AND g.bulk_operation_id IS NOT NULL
                          AND g.status IN ('InProgress', 'PendingRetry')
                        LIMIT max_open) AS begun) AS is_full
          FROM (SELECT * FROM bulk_operation_lanes b
                 WHERE b.operation_id = op.id AND NOT b.finished
                 ORDER BY b.turn, b.subscription_id LIMIT max_lanes FOR NO KEY UPDATE SKIP LOCKED) AS l
          JOIN subscriptions s ON s.id = l.subscription_id
    ), served AS MATERIALIZED (
        SELECT l.*, row_number() OVER (ORDER BY l.turn, l.subscription_id) AS place
          FROM looked_at l WHERE l.takes AND NOT l.is_full
         ORDER BY l.turn, l.subscription_id LIMIT free
    ), share AS MATERIALIZED (
        SELECT ceil(free::double precision / count(*))::integer AS size FROM served HAVING count(*) > 0
    ), found AS MATERIALIZED (
        SELECT l.subscription_id, l.place, c.*,
               row_number() OVER (PARTITION BY l.subscription_id ORDER BY c.accepted_at, c.id) AS nth
          FROM share CROSS JOIN served l
         CROSS JOIN LATERAL find_bulk_candidates(op, l.subscription_id, l.after_at, l.after_id, share.size) AS c
    ), slotted AS MATERIALIZED (
        SELECT * FROM (SELECT f.*, row_number() OVER (ORDER BY f.nth, f.place) - 1 AS slot FROM found f) AS numbered
         WHERE slot < free
    ), started AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from, bulk_operation_id,
                                            next_attempt_at)
        SELECT event_id, subscription_id, dead_letter_id, op.id, first_slot + slot * gap FROM slotted ORDER BY id
        ON CONFLICT DO NOTHING
        RETURNING id, subscription_id, next_attempt_at
    ), progress AS MATERIALIZED (
        SELECT l.subscription_id, l.takes, l.is_full,
               (SELECT max(p.accepted_at) FROM slotted p WHERE p.subscription_id = l.subscription_id) AS last_at,
               (SELECT p.id FROM slotted p WHERE p.subscription_id = l.subscription_id
                 ORDER BY p.nth DESC LIMIT 1) AS last_id,
               (SELECT count(*) FROM started a WHERE a.subscription_id = l.subscription_id) AS made,
               NOT l.takes OR NOT l.is_full AND (SELECT size FROM share)
                   > (SELECT count(*) FROM found f WHERE f.subscription_id = l.subscription_id) AS ends
          FROM looked_at l
         WHERE NOT l.takes OR l.is_full OR l.subscription_id IN (SELECT subscription_id FROM served)
    ), moved AS (
        UPDATE bulk_operation_lanes b
           SET turn = op.steps + 1,
               after_at = coalesce(p.last_at, b.after_at),
               after_id = coalesce(p.last_id, b.after_id),
               done = b.done + p.made,
               finished = p.ends,
               skipped = CASE WHEN p.ends THEN greatest(b.matched - b.done - p.made, 0) ELSE 0 END
          FROM progress p
         WHERE b.operation_id = op.id AND b.subscription_id = p.subscription_id
        RETURNING p.made, b.skipped
    )
    SELECT (SELECT array_agg(a.id ORDER BY a.next_attempt_at, a.id) FROM started a),
           (SELECT array_agg(extract(epoch FROM a.next_attempt_at - now())::double precision
                             ORDER BY a.next_attempt_at, a.id) FROM started a),
           (SELECT max(a.next_attempt_at) FROM started a),
           coalesce((SELECT sum(m.made) FROM moved m), 0), coalesce((SELECT sum(m.skipped) FROM moved m), 0)
      INTO saga_ids, delays, newest_slot, now_done, now_skipped;

    UPDATE bulk_operations o
       SET steps = o.steps + 1, last_slot_at = coalesce(newest_slot, o.last_slot_at), last_step_at = now(),
           done = o.done + now_done, skipped = o.skipped + now_skipped,
           matched = greatest(o.matched, o.done + now_done + o.skipped + now_skipped),
           status = CASE WHEN ended THEN 'Completed'::bulk_status ELSE o.status END,
           finished_at = CASE WHEN ended THEN clock_timestamp() END,
           updated_at = clock_timestamp()
      FROM (SELECT NOT EXISTS (SELECT FROM bulk_operation_lanes l
                                WHERE l.operation_id = op.id AND NOT l.finished) AS ended) AS lanes
     WHERE o.id = op.id
    RETURNING o.id, o.status INTO operation_id, status;
    RETURN NEXT;
END
$$;

-- Pauses, resumes or stops, where that is legal; otherwise nothing changes. It waits for a step that is under way.
CREATE FUNCTION move_bulk_operation(wanted_id bigint, tenant varchar, wanted bulk_status) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE bulk_operations
       SET status = wanted, updated_at = clock_timestamp(),
           finished_at = CASE WHEN wanted = 'Stopped' THEN clock_timestamp() END
     WHERE id = wanted_id AND (tenant IS NULL OR tenant_id = tenant)
       AND status IN ('Running', 'Paused') AND wanted IN ('Running', 'Paused', 'Stopped') AND status <> wanted
$$;

-- A new rate for what is not started yet.
CREATE FUNCTION pace_bulk_operation(wanted_id bigint, tenant varchar, rate double precision) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE bulk_operations SET rate_per_second = rate, updated_at = clock_timestamp()
     WHERE id = wanted_id AND (tenant IS NULL OR tenant_id = tenant) AND status IN ('Running', 'Paused')
       AND rate IS NOT NULL
$$;

GRANT SELECT ON bulk_operations, bulk_operation_lanes TO dead_letter_operator;
GRANT SELECT ON SEQUENCE bulk_operations_id_seq TO dead_letter_operator;
GRANT EXECUTE ON FUNCTION retention_horizon(), count_bulk_lanes(bulk_kind, varchar, jsonb, bigint),
    start_bulk_operation(bulk_kind, varchar, jsonb, double precision, varchar, bigint, varchar),
    step_bulk_operation(bigint[], double precision, integer, integer, integer),
    move_bulk_operation(bigint, varchar, bulk_status), pace_bulk_operation(bigint, varchar, double precision)
    TO dead_letter_operator;
