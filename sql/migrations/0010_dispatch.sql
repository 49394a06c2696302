-- What the orchestrator's sweep asks in SQS mode: waiting jobs that were never sent to a queue, or so long ago
-- that the message must be lost.
CREATE INDEX idx_job_dispatch ON webhook_delivery_jobs (dispatched_at) WHERE status = 'Pending';
