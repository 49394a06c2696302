-- Flow state of each subscription: what decides, with its settings, how many of its deliveries may be in progress
-- (core/flow.py). A row of its own, because it changes often and nothing else should meet these updates. Only the
-- orchestrator changes it: start_attempts and apply_results decide from the row without a lock, and act only where
-- version is still the one that the decision was made from.
--
-- in_flight_limit: adapts between 1 and max_in_flight. tokens, tokens_at: the bucket of the rate limit. probe_saga_id:
-- the saga whose attempt is the probe of the open circuit breaker. slow_until: until then its jobs go to the slow lane.
-- wake_at: when to look at this subscription again, because a retry is due or room opens by time; null: when a message
-- or a result says so. order_cursor: the search for the first deliveries of each ordering key goes on after it.
-- discard_through: waiting sagas up to this id are to be ended as dead letters; 0 when that is done.
CREATE TABLE subscription_flow (
    subscription_id bigint PRIMARY KEY REFERENCES subscriptions (id),
    version bigint NOT NULL DEFAULT 0,
    in_flight_limit double precision NOT NULL DEFAULT 10,
    limit_halved_at timestamptz,
    tokens double precision,
    tokens_at timestamptz,
    retry_after_until timestamptz,
    failures_in_a_row integer NOT NULL DEFAULT 0,
    breaker_opened_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    probe_at timestamptz,
    probe_saga_id bigint,
    slow_until timestamptz,
    wake_at timestamptz,
    order_cursor varchar(255) NOT NULL DEFAULT '',
    discard_through bigint NOT NULL DEFAULT 0,
    CONSTRAINT in_flight_limit_in_range CHECK (in_flight_limit BETWEEN 1 AND 1000),
    CONSTRAINT an_open_breaker_has_its_next_probe CHECK ((breaker_opened_at IS NULL) = (probe_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE INDEX idx_flow_wake ON subscription_flow (wake_at) WHERE wake_at IS NOT NULL;

-- Open circuit breakers are few, so this index is small.
CREATE INDEX idx_flow_breaker ON subscription_flow (breaker_opened_at) WHERE breaker_opened_at IS NOT NULL;

-- Endpoints that asked for time, counted by a view. A success after that time clears the column, so this index is small.
CREATE INDEX idx_flow_retry_after ON subscription_flow (retry_after_until) WHERE retry_after_until IS NOT NULL;

-- load: functions/earlier_event_waits.sql
-- load: functions/in_progress.sql
-- load: functions/start_flow.sql
-- load: functions/wake_subscriptions.sql
-- load: functions/retry_now.sql

CREATE TRIGGER a_new_subscription_has_flow AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION start_flow();

-- load: functions/wake_flow.sql

CREATE TRIGGER a_changed_subscription_is_looked_at AFTER UPDATE ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION wake_flow();
