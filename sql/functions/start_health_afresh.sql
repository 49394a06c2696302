-- Resets the health of a subscription that is new, becomes active and verified (again), or has a new address.
CREATE OR REPLACE FUNCTION start_health_afresh() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO subscription_health (subscription_id, watched_since) VALUES (NEW.id, clock_timestamp())
    ON CONFLICT (subscription_id) DO UPDATE
       SET watched_since = EXCLUDED.watched_since, consecutive_failures = 0, first_failure_at = NULL,
           warned_at_50 = NULL, warned_at_90 = NULL, disabled_at = NULL, disabled_reason = NULL,
           disabled_failing_since = NULL;
    RETURN NULL;
END
$$;
