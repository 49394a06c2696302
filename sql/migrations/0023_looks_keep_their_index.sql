-- After the statistics of a quiet moment any index of what waits will do for a look, as the planner sees it, and at times
-- it read one that has it in another order. IS TRUE hides these two from all that does not ask for them so, as in 0022.
CREATE INDEX idx_job_undispatched ON webhook_delivery_jobs (dispatched_at) WHERE (status = 'Pending') IS TRUE;
DROP INDEX idx_job_dispatch;
ALTER INDEX idx_job_undispatched RENAME TO idx_job_dispatch;

CREATE INDEX idx_saga_retrying ON webhook_delivery_sagas (subscription_id, next_attempt_at)
    WHERE (status = 'PendingRetry') IS TRUE;
DROP INDEX idx_saga_retry_subscription;
ALTER INDEX idx_saga_retrying RENAME TO idx_saga_retry_subscription;

CREATE OR REPLACE VIEW retry_debt_by_subscription WITH (security_barrier) AS
SELECT subscription_id, count(*) AS waiting_sagas, count(*) FILTER (WHERE next_attempt_at <= now()) AS due_sagas,
       min(next_attempt_at) AS next_attempt_at
  FROM webhook_delivery_sagas
 WHERE (status = 'PendingRetry') IS TRUE
 GROUP BY subscription_id;
