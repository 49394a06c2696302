-- Erases the named events: removes everything that the producer sent from the events, from their dead letters, deliveries,
-- attempts and outbox rows, and the answers of their endpoints. Waiting deliveries end as dead letters with `erased`. Of
-- attempts that a worker holds the answer will not be stored, and their delivery ends with that attempt. Returns the
-- erased ids; an event of which another session has locked a row is left as it is.
--
-- A delivery or an attempt that begins beside this is not seen here: a claim finds no payload and sends nothing. Runs with
-- the rights of step_erasure.
CREATE OR REPLACE FUNCTION erase_events(of_erasure bigint, event_ids bigint[])
RETURNS TABLE (
    erased bigint[], dead_letters bigint, attempts bigint, ended bigint, in_flight bigint, subscription_ids bigint[]
)
LANGUAGE plpgsql SET search_path = pg_catalog, public
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    held_sagas bigint[];
    held_jobs bigint[];
    held_outbox bigint[];
    of_sagas bigint[];
BEGIN
    WITH held AS MATERIALIZED (
        SELECT o.event_id FROM routing_outbox o WHERE o.event_id = ANY (event_ids)
         ORDER BY o.event_id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.event_id), '{}') INTO held_outbox FROM held h;
    WITH held AS MATERIALIZED (
        SELECT s.id FROM webhook_delivery_sagas s WHERE s.event_id = ANY (event_ids)
         ORDER BY s.id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_sagas FROM held h;
    WITH held AS MATERIALIZED (
        SELECT j.id FROM webhook_delivery_jobs j WHERE j.saga_id = ANY (held_sagas)
         ORDER BY j.id FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT coalesce(array_agg(h.id), '{}') INTO held_jobs FROM held h;
    erased := ARRAY(
        SELECT e.id FROM unnest(lock_content(event_ids)) AS e (id)
         WHERE NOT EXISTS (SELECT FROM routing_outbox o WHERE o.event_id = e.id AND o.event_id <> ALL (held_outbox))
           AND NOT EXISTS (
               SELECT FROM webhook_delivery_sagas s
                WHERE s.event_id = e.id
                  AND (s.id <> ALL (held_sagas)
                       OR EXISTS (SELECT FROM webhook_delivery_jobs j
                                   WHERE j.saga_id = s.id AND j.id <> ALL (held_jobs))))
         ORDER BY e.id);

    UPDATE events e
       SET payload = NULL, source = '', external_id = NULL, traceparent = NULL, ordering_key = NULL, attributes = '{}',
           extracted_attributes = '{}', cloud_event = NULL,
           removed_at = coalesce(e.removed_at, now()), erasure_id = of_erasure
     WHERE e.id = ANY (erased);
    UPDATE routing_outbox o SET ordering_key = NULL WHERE o.event_id = ANY (erased);
    UPDATE dead_letters d SET payload_snapshot = NULL
     WHERE d.event_id = ANY (erased) AND num_nonnulls(d.payload_snapshot) = 1;
    GET DIAGNOSTICS dead_letters = ROW_COUNT;

    of_sagas := ARRAY(SELECT s.id FROM webhook_delivery_sagas s WHERE s.event_id = ANY (erased));
    in_flight := (SELECT count(*) FROM webhook_delivery_jobs j
                   WHERE j.saga_id = ANY (of_sagas) AND j.status::text = 'Leased');
    UPDATE webhook_delivery_jobs j
       SET erased = true, response_body = NULL, response_headers = NULL, response_truncated = false, own_header_names = NULL
     WHERE j.saga_id = ANY (of_sagas) AND NOT j.erased;
    GET DIAGNOSTICS attempts = ROW_COUNT;

    WITH stopped AS (
        UPDATE webhook_delivery_sagas s
           SET status = 'DeadLettered', final_error_code = 'erased', ordering_key = NULL, updated_at = clock_timestamp()
         WHERE s.id = ANY (of_sagas) AND s.status::text IN ('Pending', 'PendingRetry')
        RETURNING s.id, s.event_id, s.subscription_id
    ), letters AS (
        INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, reason,
                                  failed_at, payload_snapshot)
        SELECT o.id, o.event_id, o.subscription_id, e.tenant_id, e.event_type, 'erased', 'its event was erased',
               clock_timestamp(), NULL
          FROM stopped o JOIN events e ON e.id = o.event_id
         ORDER BY o.id
    )
    SELECT count(*), array_agg(DISTINCT o.subscription_id) INTO ended, subscription_ids FROM stopped o;
    UPDATE webhook_delivery_sagas s SET ordering_key = NULL
     WHERE s.id = ANY (of_sagas) AND s.ordering_key IS NOT NULL;
    RETURN NEXT;
END
$$;
