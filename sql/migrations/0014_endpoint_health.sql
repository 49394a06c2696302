-- Who keeps the health of endpoints and switches off those that are gone: a login of its own, because neither the
-- worker nor the orchestrator may touch a subscription. As in 0001, roles belong to the whole cluster.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'endpoint_health_monitor') THEN
        BEGIN
            CREATE ROLE endpoint_health_monitor LOGIN;
            ALTER ROLE endpoint_health_monitor SET statement_timeout = '30s';
            ALTER ROLE endpoint_health_monitor SET lock_timeout = '10s';
            ALTER ROLE endpoint_health_monitor SET idle_in_transaction_session_timeout = '30s';
            ALTER ROLE endpoint_health_monitor SET enable_seqscan = off;
            ALTER ROLE endpoint_health_monitor SET enable_hashjoin = off;
            ALTER ROLE endpoint_health_monitor SET enable_mergejoin = off;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            RAISE NOTICE 'role endpoint_health_monitor was created beside this migration';
        END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
        GRANT rds_iam TO endpoint_health_monitor;
    END IF;
END
$$;

-- One row per subscription: the run of failures since its last success. Beside subscriptions, not in it, so that
-- counting never waits for configuration, nor configuration for counting. Attempts that were claimed before
-- watched_since say nothing: they belong to an address, or to a time, that is over.
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
    CONSTRAINT a_run_of_failures_has_a_beginning CHECK ((consecutive_failures > 0) = (first_failure_at IS NOT NULL)),
    CONSTRAINT disabling_has_a_reason CHECK (
        (disabled_at IS NULL) = (disabled_reason IS NULL) AND (disabled_at IS NULL) = (disabled_failing_since IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- What the monitor asks: runs that are old and still go on. Subscriptions that were switched off by hand stay in it;
-- the second column passes them by without reading their rows.
CREATE INDEX idx_health_failing ON subscription_health (first_failure_at, last_failure_at)
    WHERE first_failure_at IS NOT NULL AND disabled_at IS NULL;

INSERT INTO subscription_health (subscription_id) SELECT id FROM subscriptions;

-- How far attempts are counted: each one once, by whoever holds this row. It starts now, so that nothing that
-- happened before this migration switches anything off.
CREATE TABLE subscription_health_mark (
    only_row boolean PRIMARY KEY DEFAULT true,
    counted_until timestamptz NOT NULL,
    CONSTRAINT there_is_one_mark CHECK (only_row)
);

INSERT INTO subscription_health_mark (counted_until) VALUES (clock_timestamp());

-- Endpoints whose row of health somebody had locked when their attempts were to be counted: theirs are counted from
-- counted_until on, as soon as the lock is gone, and all others go on meanwhile (decision 59). No foreign key, which would
-- wait for a lock itself; the ids come from the jobs.
CREATE TABLE subscription_health_behind (
    subscription_id bigint PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- A receiver that answered 410 is found at once, not when its attempts are counted.
CREATE INDEX idx_job_gone ON webhook_delivery_jobs (finished_at) WHERE error_code = 'http_410';

-- A new subscription, one that becomes active and verified (again), and one whose address is replaced start afresh,
-- whoever it is that changes them.
CREATE FUNCTION start_health_afresh() RETURNS trigger
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

CREATE TRIGGER a_new_subscription_is_watched AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION start_health_afresh();
CREATE TRIGGER a_fresh_start_forgets_failures AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        OLD.eligible_since IS NULL AND NEW.eligible_since IS NOT NULL OR OLD.callback_url <> NEW.callback_url
    )
    EXECUTE FUNCTION start_health_afresh();

-- Dead letters that a subscriber of hooksaga.delivery.dead_lettered has not been told of. Of a dead operational event
-- nobody is told, or one failing subscriber would keep the system busy with itself; and where nobody subscribes,
-- nothing is written.
CREATE TABLE operational_outbox (
    dead_letter_id bigint PRIMARY KEY REFERENCES dead_letters (id),
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

CREATE FUNCTION put_dead_letters_in_operational_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO operational_outbox (dead_letter_id)
    SELECT d.id
      FROM new_dead_letters d
     WHERE d.event_type NOT LIKE 'hooksaga.%'
       AND EXISTS (SELECT FROM subscriptions s
                    WHERE s.tenant_id = d.tenant_id AND s.event_type = 'hooksaga.delivery.dead_lettered'
                      AND s.active AND s.verified AND s.deleted_at IS NULL);
    RETURN NULL;
END
$$;

CREATE TRIGGER put_dead_letters_in_operational_outbox AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS new_dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION put_dead_letters_in_operational_outbox();

-- Event types that begin with hooksaga., and the source hooksaga, are the monitor's, and it writes no others: a
-- receiver may trust such an event, and the monitor cannot speak for a producer.
CREATE FUNCTION refuse_borrowed_event_type() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events of type % and source % are not for %', NEW.event_type, NEW.source, current_user
        USING ERRCODE = 'HS001';
END
$$;

CREATE TRIGGER operational_events_are_the_monitors BEFORE INSERT ON events
    FOR EACH ROW WHEN (
        (NEW.event_type LIKE 'hooksaga.%') <> (current_user = 'endpoint_health_monitor')
        OR (NEW.source = 'hooksaga') <> (current_user = 'endpoint_health_monitor')
    )
    EXECUTE FUNCTION refuse_borrowed_event_type();

-- What a disabled subscription has missed, at most the given number of rows looked at for each count. SECURITY
-- DEFINER: roles that configure subscriptions learn two numbers, and read neither events nor dead letters.
--
-- An event was missed when its routing saw that the subscription was switched off, or is still to come, and it has no
-- saga. Times only say where to look, so that a clock that was set back hides nothing: from disabled_at on, and among as
-- many events from before. `since` is the time from which a backfill finds all that are counted. Dead letters are
-- looked at by id, newest first: from the oldest that died since the failures began, all that have a greater id count.
CREATE FUNCTION missed_while_disabled(disabled_id bigint, most integer)
RETURNS TABLE (failing_since timestamptz, since timestamptz, dead_letters bigint, events bigint, at_least boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
    WITH disabled AS MATERIALIZED (
        SELECT s.id, s.tenant_id, s.event_type, h.disabled_at, h.disabled_failing_since,
               (SELECT min(id) FROM subscription_history WHERE subscription_id = s.id AND id > coalesce((
                    SELECT id FROM subscription_history
                     WHERE subscription_id = s.id AND eligible_after_event IS NOT NULL
                     ORDER BY id DESC LIMIT 1), 0)) AS change
          FROM subscription_health h JOIN subscriptions s ON s.id = h.subscription_id
         WHERE h.subscription_id = disabled_id AND h.disabled_at IS NOT NULL
    ), dead AS (
        SELECT l.*, min(l.id) FILTER (WHERE l.failed_at >= l.disabled_failing_since) OVER () AS first_id
          FROM (SELECT d.id, d.failed_at, d.final_error_code, disabled.disabled_failing_since
                  FROM disabled JOIN dead_letters d ON d.subscription_id = disabled.id
                 ORDER BY d.id DESC LIMIT most) AS l
    ), died AS (
        SELECT min(failed_at) AS since, count(*) AS looked_at,
               count(*) FILTER (WHERE final_error_code IS DISTINCT FROM 'canceled' AND NOT EXISTS (
                   SELECT FROM webhook_delivery_sagas WHERE requeued_from = dead.id)) AS missed
          FROM dead WHERE id >= first_id
    ), accepted AS (
        SELECT e.*, e.created_at >= disabled_at AS is_later, disabled.id AS by_subscription, change
          FROM disabled CROSS JOIN LATERAL (
            (SELECT id, tenant_id, created_at FROM events
              WHERE event_type = disabled.event_type AND created_at >= disabled.disabled_at
              ORDER BY created_at LIMIT most)
            UNION ALL
            (SELECT id, tenant_id, created_at FROM events
              WHERE event_type = disabled.event_type AND created_at < disabled.disabled_at
              ORDER BY created_at DESC LIMIT most)) AS e
    ), passed_by AS (
        SELECT min(created_at) FILTER (WHERE missed) AS since, count(*) FILTER (WHERE missed) AS missed,
               count(*) FILTER (WHERE is_later) AS looked_at
          FROM accepted a CROSS JOIN LATERAL (
            SELECT a.tenant_id = (SELECT tenant_id FROM disabled)
                   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                    WHERE g.event_id = a.id AND g.subscription_id = a.by_subscription)
                   AND (EXISTS (SELECT FROM routing_outbox WHERE event_id = a.id)
                        OR a.change <= (
                            SELECT d.newest_change FROM routing_decisions d
                             WHERE d.event_id = a.id AND d.after_subscription < a.by_subscription
                               AND (d.through_subscription IS NULL OR a.by_subscription <= d.through_subscription)
                             ORDER BY d.newest_change LIMIT 1)) AS missed) AS judged
    )
    SELECT least(disabled_failing_since, died.since), least(disabled_at, passed_by.since), died.missed,
           passed_by.missed, died.looked_at >= most OR passed_by.looked_at >= most
      FROM disabled CROSS JOIN died CROSS JOIN passed_by
$$;

-- endpoint_health_monitor: reads how attempts ended, never what was sent or answered; may switch a subscription off
-- or on and change nothing else of it; adds operational events.
GRANT USAGE ON SCHEMA public TO endpoint_health_monitor;
GRANT SELECT (id, subscription_id, status, error_code, leased_at, finished_at)
    ON webhook_delivery_jobs TO endpoint_health_monitor;
GRANT SELECT (id, tenant_id, event_type, callback_url, active, verified, deleted_at)
    ON subscriptions TO endpoint_health_monitor;
GRANT UPDATE (active) ON subscriptions TO endpoint_health_monitor;
GRANT SELECT ON subscription_health, subscription_health_mark TO endpoint_health_monitor;
GRANT UPDATE (consecutive_failures, first_failure_at, last_failure_at, last_success_at, last_error_code, warned_at_50,
              warned_at_90, disabled_at, disabled_reason, disabled_failing_since)
    ON subscription_health TO endpoint_health_monitor;
GRANT UPDATE (counted_until) ON subscription_health_mark TO endpoint_health_monitor;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_health_behind TO endpoint_health_monitor;
GRANT SELECT, UPDATE, DELETE ON operational_outbox TO endpoint_health_monitor;
GRANT SELECT (id, saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, failed_at)
    ON dead_letters TO endpoint_health_monitor;
GRANT SELECT (id, attempt_count) ON webhook_delivery_sagas TO endpoint_health_monitor;
GRANT SELECT (id, webhook_id, tenant_id, source, external_id) ON events TO endpoint_health_monitor;
GRANT INSERT (tenant_id, event_type, source, external_id, payload) ON events TO endpoint_health_monitor;

-- saga_orchestrator: a dead letter says why its subscription was switched off.
GRANT SELECT (subscription_id, disabled_at, disabled_reason, disabled_failing_since) ON subscription_health
    TO saga_orchestrator;

-- subscription_admin: shows health, and what was missed.
GRANT SELECT ON subscription_health, subscription_health_mark TO subscription_admin;
GRANT EXECUTE ON FUNCTION missed_while_disabled(bigint, integer) TO subscription_admin;
REVOKE EXECUTE ON FUNCTION missed_while_disabled(bigint, integer) FROM PUBLIC;
