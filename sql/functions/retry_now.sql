-- Makes waiting sagas of one subscription due now: the saga only_saga, or, if that is null, all that wait for a retry, at
-- most `most`. Also ends a wait that the endpoint asked for with Retry-After, and has an open circuit breaker probe now.
-- Returns how many sagas wait that may be tried now. Locks the flow first, as the orchestrator does, and waits for its
-- lock; sagas that another session has locked are passed by. SECURITY DEFINER: operators have no other way to change
-- sagas.
CREATE OR REPLACE FUNCTION retry_now(of_subscription bigint, only_saga bigint, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    found_ids bigint[];
BEGIN
    PERFORM FROM subscription_flow WHERE subscription_id = of_subscription FOR NO KEY UPDATE;
    IF only_saga IS NULL THEN
        found_ids := ARRAY(
            SELECT g.id FROM webhook_delivery_sagas g
             WHERE g.subscription_id = of_subscription AND g.status IN ('Pending', 'PendingRetry')
               AND (g.status = 'PendingRetry' OR g.next_attempt_at <= now())
             ORDER BY g.next_attempt_at DESC LIMIT most);
    ELSE
        found_ids := ARRAY(
            SELECT g.id FROM webhook_delivery_sagas g
             WHERE g.id = only_saga AND g.subscription_id = of_subscription
               AND g.status::text IN ('Pending', 'PendingRetry'));
    END IF;
    IF cardinality(found_ids) = 0 THEN
        RETURN 0;
    END IF;
    WITH held AS MATERIALIZED (
        SELECT g.id FROM webhook_delivery_sagas g
         WHERE g.id = ANY (found_ids) AND g.status::text IN ('Pending', 'PendingRetry') AND g.next_attempt_at > now()
         ORDER BY g.id FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE webhook_delivery_sagas s SET next_attempt_at = now(), updated_at = now()
      FROM held WHERE s.id = held.id;
    UPDATE subscription_flow f
       SET version = f.version + 1, wake_at = now(), retry_after_until = NULL,
           probe_at = CASE WHEN f.breaker_opened_at IS NULL THEN f.probe_at ELSE least(f.probe_at, now()) END
     WHERE f.subscription_id = of_subscription;
    RETURN cardinality(found_ids);
END
$$;
