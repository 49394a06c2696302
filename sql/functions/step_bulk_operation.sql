-- Executes one step of one Running operation, the one stepped longest ago, except those in passed_by: starts sagas
-- whose next_attempt_at lie 1 / rate_per_second apart, until the horizon is filled. Returns no row if there is
-- nothing to do. Concurrent callers skip the locked operation, so the rate holds for any number of them. A locked
-- lane is skipped too, and served later.
--
-- An operation whose deliveries nearly all fail is stopped, with the reason (bulk_operation_fails).
--
-- A lane whose subscription is no longer eligible is finished, and its remaining matches count as skipped. A lane
-- with max_open sagas of bulk operations in progress, due or waiting for a retry waits; the others share the slots evenly.
-- Sagas are inserted in the order of their sources, as in every other stage.
CREATE OR REPLACE FUNCTION step_bulk_operation(
    passed_by bigint[], horizon_seconds double precision, max_sagas integer, max_lanes integer, max_open integer
)
RETURNS TABLE (
    operation_id bigint, status bulk_status, saga_ids bigint[], subscription_ids bigint[], delays double precision[]
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    op bulk_operations;
    gap interval;
    first_slot timestamptz;
    free integer;
    newest_slot timestamptz;
    due timestamptz[];
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
    IF bulk_operation_fails(op) THEN
        UPDATE bulk_operations o
           SET status = 'Stopped', stop_reason = 'failing', finished_at = clock_timestamp(),
               updated_at = clock_timestamp()
         WHERE o.id = op.id
        RETURNING o.id, o.status INTO operation_id, status;
        RETURN NEXT;
        RETURN;
    END IF;
    PERFORM FROM retention_state FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN  -- retention is at work; nothing was started, so the caller comes again at the next poll
        operation_id := op.id;
        status := op.status;
        RETURN NEXT;
        RETURN;
    END IF;
    gap := ceil(1e6 / op.rate_per_second) * interval '1 microsecond';
    first_slot := greatest(op.last_slot_at + gap, now());
    free := least(max_sagas, ceil(
        extract(epoch FROM now() + make_interval(secs => horizon_seconds) - first_slot) / extract(epoch FROM gap)));

    WITH looked_at AS MATERIALIZED (
        SELECT l.*,
               s.active AND s.verified AND s.deleted_at IS NULL
                   AND (op.kind <> 'backfill' OR to_jsonb(s.event_types) = op.filter -> 'event_types') AS takes,
               max_open <= (
                   SELECT count(*) FROM (
                       SELECT FROM webhook_delivery_sagas g
                        WHERE g.subscription_id = l.subscription_id AND g.bulk_operation_id IS NOT NULL
                          AND g.status IN ('Pending', 'InProgress', 'PendingRetry')
                          AND (g.status <> 'Pending' OR g.next_attempt_at <= now())
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
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, resent_from, requeued_from,
                                            bulk_operation_id, next_attempt_at)
        SELECT event_id, subscription_id, origin_id, dead_letter_id, op.id, first_slot + slot * gap
          FROM slotted ORDER BY id
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
           (SELECT array_agg(a.subscription_id ORDER BY a.next_attempt_at, a.id) FROM started a),
           (SELECT array_agg(a.next_attempt_at ORDER BY a.next_attempt_at, a.id) FROM started a),
           (SELECT array_agg(extract(epoch FROM a.next_attempt_at - now())::double precision
                             ORDER BY a.next_attempt_at, a.id) FROM started a),
           (SELECT max(a.next_attempt_at) FROM started a),
           coalesce((SELECT sum(m.made) FROM moved m), 0), coalesce((SELECT sum(m.skipped) FROM moved m), 0)
      INTO saga_ids, subscription_ids, due, delays, newest_slot, now_done, now_skipped;
    PERFORM wake_subscriptions(subscription_ids, due);

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
