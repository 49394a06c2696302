-- Has the orchestrator look at a changed subscription: it may have been resumed, deactivated or given another limit. A
-- new address starts without the failures of the old one. Switching the circuit breaker off closes it.
CREATE OR REPLACE FUNCTION wake_flow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF NEW.callback_url <> OLD.callback_url OR NEW.active AND NOT OLD.active THEN
        UPDATE subscription_flow
           SET version = version + 1, wake_at = now(), in_flight_limit = 10, limit_halved_at = NULL,
               retry_after_until = NULL, failures_in_a_row = 0, breaker_opened_at = NULL, probes = 0,
               probe_at = NULL, probe_saga_id = NULL, slow_until = NULL
         WHERE subscription_id = NEW.id;
    ELSE
        UPDATE subscription_flow SET version = version + 1, wake_at = now() WHERE subscription_id = NEW.id;
    END IF;
    IF OLD.circuit_breaker AND NOT NEW.circuit_breaker THEN
        UPDATE subscription_flow SET breaker_opened_at = NULL, probes = 0, probe_at = NULL, probe_saga_id = NULL
         WHERE subscription_id = NEW.id AND breaker_opened_at IS NOT NULL;
    END IF;
    IF NEW.discard_through > OLD.discard_through THEN
        UPDATE subscription_flow SET discard_through = NEW.discard_through WHERE subscription_id = NEW.id;
    END IF;
    RETURN NULL;
END
$$;
