-- One row per subscription: the run of failures since its last success. A table of its own, so that counting and
-- configuration never lock each other out. Attempts claimed before watched_since are ignored: they belong to an
-- earlier address or period. breaker_told_at: the opening of the circuit breaker that was told to subscribers, until its
-- end is told too.
CREATE TABLE subscription_health (
    subscription_id bigint PRIMARY KEY REFERENCES subscriptions (id),
    watched_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    consecutive_failures bigint NOT NULL DEFAULT 0,
    first_failure_at timestamptz,
    last_failure_at timestamptz,
    last_success_at timestamptz,
    last_error_code varchar(100),
    warned_at_50 timestamptz,
    warned_at_90 timestamptz,
    disabled_at timestamptz,
    disabled_reason varchar(100),
    disabled_failing_since timestamptz,
    breaker_told_at timestamptz,
    told_failing_since timestamptz,
    CONSTRAINT a_run_of_failures_has_a_beginning CHECK ((consecutive_failures > 0) = (first_failure_at IS NOT NULL)),
    CONSTRAINT disabling_has_a_reason CHECK (
        (disabled_at IS NULL) = (disabled_reason IS NULL) AND (disabled_at IS NULL) = (disabled_failing_since IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- The health monitor: old runs of failures that continue. Subscriptions that were deactivated by hand stay in the
-- index; the second column skips them without reading their rows.
CREATE INDEX idx_health_failing ON subscription_health (first_failure_at, last_failure_at)
    WHERE first_failure_at IS NOT NULL AND disabled_at IS NULL;

-- The health monitor: endpoints of which an event said that they fail, or were disabled, since that time. The first
-- success after it is told, and clears the time.
CREATE INDEX idx_health_told_failing ON subscription_health (subscription_id, told_failing_since, last_success_at)
    WHERE told_failing_since IS NOT NULL AND disabled_at IS NULL;

-- The console lists disabled endpoints, newest first. Small while endpoints are healthy.
CREATE INDEX idx_health_disabled ON subscription_health (disabled_at) WHERE disabled_at IS NOT NULL;

-- The health monitor compares the openings that were told with the circuit breakers that are open.
CREATE INDEX idx_health_breaker ON subscription_health (subscription_id, breaker_told_at)
    WHERE breaker_told_at IS NOT NULL;

-- load: functions/start_health_afresh.sql

CREATE TRIGGER a_new_subscription_is_watched AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION start_health_afresh();
CREATE TRIGGER a_fresh_start_forgets_failures AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        OLD.eligible_since IS NULL AND NEW.eligible_since IS NOT NULL OR OLD.callback_url <> NEW.callback_url
    )
    EXECUTE FUNCTION start_health_afresh();

-- Attempts are counted up to here. Counting locks this row, so each attempt is counted once.
CREATE TABLE subscription_health_mark (
    only_row boolean PRIMARY KEY DEFAULT true,
    counted_until timestamptz NOT NULL,
    CONSTRAINT there_is_one_mark CHECK (only_row)
);

INSERT INTO subscription_health_mark (counted_until) VALUES (clock_timestamp());

-- Endpoints whose health row was locked when their attempts were to be counted. Their attempts are counted from
-- counted_until on once the lock is released; the others are not delayed (decision 59). No foreign key, because it
-- would wait for a lock; the ids come from the jobs.
CREATE TABLE subscription_health_behind (
    subscription_id bigint PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- load: functions/events_around.sql
-- load: functions/missed_while_disabled.sql
