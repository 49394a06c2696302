-- Queries of dashboards, and the gauges of `GET /metrics`. Views and their meaning: sql/schema/13_views.sql.

-- name: gauges
SELECT (SELECT age_seconds FROM outbox_age) AS outbox_age_seconds,
       (SELECT age_seconds FROM oldest_due_saga) AS oldest_due_saga_age_seconds,
       (SELECT coalesce(sum(waiting_sagas), 0)::bigint FROM retry_debt_by_subscription) AS retry_debt_sagas,
       (SELECT coalesce(sum(leased_jobs), 0)::bigint FROM in_flight_by_subscription) AS in_flight_jobs,
       (SELECT coalesce(max(behind_seconds), 0) FROM retention_lag) AS retention_behind_seconds,
       flow.paused, flow.retry_after, flow.breaker_open, flow.breaker_open_for_an_hour
  FROM subscriptions_by_flow_state AS flow;

-- name: subscriptions_by_flow_state
SELECT paused, retry_after, breaker_open, breaker_open_for_an_hour FROM subscriptions_by_flow_state;

-- name: outbox_age
SELECT event_id, accepted_at, age_seconds FROM outbox_age;

-- name: oldest_due_saga
SELECT saga_id, event_id, subscription_id, status, attempt_count, due_at, age_seconds FROM oldest_due_saga;

-- name: retry_debt_by_subscription
SELECT subscription_id, waiting_sagas, due_sagas, next_attempt_at FROM retry_debt_by_subscription
 ORDER BY waiting_sagas DESC LIMIT %(limit)s;

-- name: in_flight_by_subscription
SELECT subscription_id, leased_jobs, expired_leases, oldest_leased_at FROM in_flight_by_subscription
 ORDER BY leased_jobs DESC LIMIT %(limit)s;

-- name: deliveries_per_minute
SELECT minute, succeeded, failed, mean_duration_ms, max_duration_ms FROM deliveries_per_minute ORDER BY minute;

-- name: retention_lag
SELECT kind, keep_seconds, looked_at, behind_seconds FROM retention_lag ORDER BY kind;
