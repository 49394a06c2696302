-- Counts what a disabled subscription has missed, reading at most `most` rows for each count. SECURITY DEFINER: roles
-- that configure subscriptions get two numbers, and read neither events nor dead letters. It was disabled by the monitor,
-- or somebody switched it off after it had received events: then since the change that its history holds.
--
-- An event was missed if it has no saga and its routing saw the subscription disabled, or is still to come. Times
-- only select where to look, so that a clock set back hides nothing: all events from disabled_at on, and as many from
-- before. `since` is the time from which a backfill finds all that are counted. Dead letters are read by id, newest
-- first: all from the oldest one since the failures began.
CREATE OR REPLACE FUNCTION missed_while_disabled(disabled_id bigint, most integer)
RETURNS TABLE (failing_since timestamptz, since timestamptz, dead_letters bigint, events bigint, at_least boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
    WITH disabled AS MATERIALIZED (
        SELECT s.id, s.tenant_id, s.event_types, s.filter_path, coalesce(h.disabled_at, ended.changed_at) AS disabled_at,
               coalesce(h.disabled_failing_since, h.disabled_at, ended.changed_at) AS disabled_failing_since,
               ended.id AS change
          FROM subscriptions s
          JOIN subscription_health h ON h.subscription_id = s.id
         CROSS JOIN LATERAL (
            SELECT id, changed_at FROM subscription_history
             WHERE subscription_id = s.id AND id > coalesce((
                    SELECT id FROM subscription_history
                     WHERE subscription_id = s.id AND eligible_after_event IS NOT NULL
                     ORDER BY id DESC LIMIT 1), CASE WHEN h.disabled_at IS NOT NULL THEN 0 END)
             ORDER BY id LIMIT 1) AS ended
         WHERE s.id = disabled_id
    ), dead AS (
        SELECT l.*, min(l.id) FILTER (WHERE l.failed_at >= l.disabled_failing_since) OVER () AS first_id
          FROM (SELECT d.id, d.failed_at, d.final_error_code, disabled.disabled_failing_since,
                       num_nonnulls(d.payload_snapshot) = 1 AS has_payload
                  FROM disabled JOIN dead_letters d ON d.subscription_id = disabled.id
                 ORDER BY d.id DESC LIMIT most) AS l
    ), died AS (
        SELECT min(failed_at) AS since, count(*) AS looked_at,
               count(*) FILTER (WHERE has_payload AND coalesce(final_error_code, '') NOT IN ('canceled', 'discarded') AND NOT EXISTS (
                   SELECT FROM webhook_delivery_sagas WHERE requeued_from = dead.id)) AS missed
          FROM dead WHERE id >= first_id
    ), accepted AS (
        SELECT e.*, e.created_at >= disabled_at AS is_later, disabled.id AS by_subscription, change,
               disabled.filter_path
          FROM disabled CROSS JOIN LATERAL events_around(disabled.event_types, disabled.disabled_at, most) AS e
    ), passed_by AS (
        SELECT min(created_at) FILTER (WHERE missed) AS since, count(*) FILTER (WHERE missed) AS missed,
               count(*) FILTER (WHERE is_later) AS looked_at
          FROM accepted a CROSS JOIN LATERAL (
            SELECT a.tenant_id = (SELECT tenant_id FROM disabled)
                   AND filter_matches(a.filter_path, compared_attributes(a.attributes))
                   AND NOT a.is_erased
                   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                    WHERE g.event_id = a.id AND g.subscription_id = a.by_subscription)
                   AND (EXISTS (SELECT FROM routing_outbox WHERE event_id = a.id)
                        OR a.change <= (
                            SELECT d.newest_change FROM routing_decisions d
                             WHERE d.event_id = a.id AND coalesce(d.after_subscription, 0) < a.by_subscription
                               AND (d.through_subscription IS NULL OR a.by_subscription <= d.through_subscription)
                             ORDER BY d.newest_change LIMIT 1)) AS missed) AS judged
    )
    SELECT least(disabled_failing_since, died.since), least(disabled_at, passed_by.since), died.missed,
           passed_by.missed, died.looked_at >= most OR passed_by.looked_at >= most
      FROM disabled CROSS JOIN died CROSS JOIN passed_by
$$;
