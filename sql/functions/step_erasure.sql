-- Executes one step of one running erasure, the one stepped longest ago: reads events by id, at most max_read of them, and
-- erases at most max_events with about max_deliveries, at least one event. Returns no row if there is nothing to do;
-- skipped: events that were left for another pass, because a row was locked. Concurrent callers skip the locked erasure.
-- The primary key serves it: an index by tenant would cost every insert, for a request that is rare.
CREATE OR REPLACE FUNCTION step_erasure(max_events integer, max_read integer, max_deliveries integer)
RETURNS TABLE (erasure_id bigint, status erasure_status, events bigint, ended bigint, skipped bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
    op erasures;
    few bigint[];
    wanted bigint[];
    read_to bigint;
    read_all boolean;
    done record;
    first_left bigint;
    is_over boolean;
BEGIN
    SELECT r.* INTO op FROM erasures r WHERE r.status = 'Running'
     ORDER BY r.last_step_at NULLS FIRST, r.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF op.event_id IS NOT NULL THEN
        wanted := ARRAY(SELECT e.id FROM events e WHERE e.id = op.event_id AND e.erasure_id IS NULL);
        read_to := op.event_id;
        read_all := true;
    ELSE
        WITH read AS MATERIALIZED (
            SELECT e.id, e.is_wanted, count(*) FILTER (WHERE e.is_wanted) OVER (ORDER BY e.id) AS nth
              FROM (SELECT o.id,
                           o.tenant_id = op.tenant_id AND o.erasure_id IS NULL
                               AND (op.attribute_name IS NULL
                                    OR attributes_of_event(o.attributes, o.extracted_attributes) -> op.attribute_name
                                       <@ op.attribute_values) AS is_wanted
                      FROM events o
                     WHERE o.id > op.after_id AND o.id <= op.until_id ORDER BY o.id LIMIT max_read) AS e
        )
        SELECT coalesce(array_agg(r.id ORDER BY r.id) FILTER (WHERE r.is_wanted), '{}'), max(r.id),
               (SELECT count(*) < max_read AND max(nth) <= max_events FROM read)
          INTO wanted, read_to, read_all
          FROM read r WHERE r.nth <= max_events;
        few := ARRAY(
            SELECT w.id
              FROM (SELECT e.id, sum(n.deliveries) OVER (ORDER BY e.id) - n.deliveries AS before
                      FROM unnest(wanted) AS e (id)
                     CROSS JOIN LATERAL (
                          SELECT count(*) AS deliveries
                            FROM (SELECT FROM webhook_delivery_sagas s WHERE s.event_id = e.id LIMIT max_deliveries) AS l
                          ) AS n) AS w
             WHERE w.before < max_deliveries ORDER BY w.id);
        IF cardinality(few) < cardinality(wanted) THEN
            wanted := few;
            read_to := few[cardinality(few)];
            read_all := false;
        END IF;
    END IF;
    SELECT * INTO done FROM erase_events(op.id, wanted);
    SELECT min(w.id), count(*) INTO first_left, skipped FROM unnest(wanted) AS w (id) WHERE w.id <> ALL (done.erased);
    first_left := least(op.left_from, first_left);
    is_over := coalesce(read_all, true) AND first_left IS NULL;
    IF done.subscription_ids IS NOT NULL THEN
        PERFORM wake_subscriptions(done.subscription_ids,
                                   array_fill(now(), ARRAY[cardinality(done.subscription_ids)]));
    END IF;
    UPDATE erasures r
       SET after_id = CASE WHEN is_over THEN op.until_id
                           WHEN coalesce(read_all, true) THEN first_left - 1
                           ELSE read_to END,
           left_from = CASE WHEN coalesce(read_all, true) THEN NULL ELSE first_left END,
           events = r.events + cardinality(done.erased), dead_letters = r.dead_letters + done.dead_letters,
           attempts = r.attempts + done.attempts, ended = r.ended + done.ended, in_flight = r.in_flight + done.in_flight,
           steps = r.steps + 1, last_step_at = clock_timestamp(),
           status = CASE WHEN is_over THEN 'Completed'::erasure_status ELSE r.status END,
           finished_at = CASE WHEN is_over THEN clock_timestamp() END,
           attribute_values = CASE WHEN is_over THEN NULL ELSE r.attribute_values END
     WHERE r.id = op.id
    RETURNING r.id, r.status INTO erasure_id, status;
    IF is_over THEN  -- the search for ordered deliveries may stand at a key that is gone
        UPDATE subscription_flow f SET order_cursor = '', version = f.version + 1
          FROM (SELECT c.subscription_id FROM subscription_flow c
                  JOIN subscriptions s ON s.id = c.subscription_id AND s.tenant_id = op.tenant_id
                 WHERE c.order_cursor <> '' ORDER BY c.subscription_id FOR NO KEY UPDATE OF c SKIP LOCKED) AS standing
         WHERE f.subscription_id = standing.subscription_id;
    END IF;
    events := cardinality(done.erased);
    ended := done.ended;
    RETURN NEXT;
END
$$;
