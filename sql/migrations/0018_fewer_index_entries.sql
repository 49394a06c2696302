-- A delivery writes its saga three times and its job four times, and each time again into every index that the row is
-- in. What another index answers as well is not kept twice (decision 38).

-- The pair, once for routing and once for each requeue, and at the same time what asks for the sagas of an event.
CREATE UNIQUE INDEX uniq_saga_event_pair ON webhook_delivery_sagas
    (event_id, subscription_id, coalesce(requeued_from, 0));
DROP INDEX uniq_saga_event_subscription;
DROP INDEX idx_saga_event;
ALTER INDEX uniq_saga_event_pair RENAME TO uniq_saga_event_subscription;

-- uniq_job_saga_attempt begins with saga_id too.
DROP INDEX idx_job_saga;

-- Waiting sagas are in idx_saga_status_retry, waiting jobs in those that a claim and a dispatch ask.
CREATE INDEX idx_saga_in_progress ON webhook_delivery_sagas (status) WHERE status = 'InProgress';
DROP INDEX idx_saga_status;
ALTER INDEX idx_saga_in_progress RENAME TO idx_saga_status;
CREATE INDEX idx_job_leased ON webhook_delivery_jobs (status, lease_until) WHERE status = 'Leased';
DROP INDEX idx_job_status_lease;
ALTER INDEX idx_job_leased RENAME TO idx_job_status_lease;
