-- What the attempt log tells beyond the result: how many attempts the saga had when this one began, and the names of
-- the subscription's own headers, separated by spaces (their values are secrets, and the subscription may have others
-- by now). Every other header follows from the event and the attempt, so it is put together at reading: a whole text
-- per attempt would nearly double what a result costs (decision 35). Null: an attempt from before, or one that sent
-- nothing.
ALTER TABLE webhook_delivery_jobs
    ADD COLUMN max_attempts integer,
    ADD COLUMN own_header_names text;

GRANT INSERT (max_attempts) ON webhook_delivery_jobs TO saga_orchestrator;
GRANT UPDATE (own_header_names) ON webhook_delivery_jobs TO job_worker;

-- The new columns are as fixed as the old ones: job_facts_hold and finished_job_never_changes for them.
CREATE TRIGGER attempt_log_never_changes BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        NEW.max_attempts IS DISTINCT FROM OLD.max_attempts
        OR OLD.status IN ('Completed', 'Failed') AND NEW.own_header_names IS DISTINCT FROM OLD.own_header_names
    )
    EXECUTE FUNCTION refuse_row('job', 'what was tried is history');

-- The log of one subscription, by time.
CREATE INDEX IF NOT EXISTS idx_job_subscription_finished ON webhook_delivery_jobs (subscription_id, finished_at)
    WHERE finished_at IS NOT NULL;

-- Failures are few where all is well, so these cost nothing there: of one subscription, by error word, and by the
-- first digit of the status (0 where nothing was answered).
CREATE INDEX idx_job_failed_subscription ON webhook_delivery_jobs (subscription_id, finished_at, id)
    WHERE status = 'Failed';
CREATE INDEX idx_job_failed_error ON webhook_delivery_jobs (error_code, finished_at, id)
    WHERE status = 'Failed';
CREATE INDEX idx_job_failed_class ON webhook_delivery_jobs
    ((coalesce(response_status / 100, 0)), finished_at, id)
    WHERE status = 'Failed';

-- When one subscription is tried again, and how much waits for that.
CREATE INDEX idx_saga_retry_subscription ON webhook_delivery_sagas (subscription_id, next_attempt_at)
    WHERE status = 'PendingRetry';
