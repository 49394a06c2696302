-- One job: one attempt to deliver one payload to one subscription. It is the attempt log too.
--
-- max_attempts: how many attempts the saga had when this one began. own_header_names: those of the subscription's own
-- headers, separated by spaces (their values are secrets, and the subscription may have others by now). Every other
-- header follows from the event and the attempt, so it is put together at reading: a whole text per attempt would
-- nearly double what a result costs (decision 35). Null: an attempt that sent nothing.
CREATE TYPE job_status AS ENUM ('Pending', 'Leased', 'Completed', 'Failed');

CREATE TABLE webhook_delivery_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga_id bigint NOT NULL REFERENCES webhook_delivery_sagas (id),
    subscription_id bigint NOT NULL,
    attempt_number integer NOT NULL,
    status job_status NOT NULL DEFAULT 'Pending',
    lease_until timestamptz,
    attempt_at timestamptz NOT NULL,
    response_status integer,
    error_code varchar(100),
    worker_id varchar(100),
    claim_count integer NOT NULL DEFAULT 0,
    lost_leases integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    dispatched_at timestamptz,
    leased_at timestamptz,
    finished_at timestamptz,
    duration_ms integer,
    response_body text,
    response_truncated boolean NOT NULL DEFAULT false,
    retry_after_seconds integer,
    resolved_ip inet,
    -- A kept connection ended without a byte of an answer, and the POST went out again over a new one.
    reconnected boolean NOT NULL DEFAULT false,
    applied_at timestamptz,
    max_attempts integer,
    own_header_names text,
    CONSTRAINT attempt_number_is_positive CHECK (attempt_number >= 1),
    CONSTRAINT response_status_in_range CHECK (response_status BETWEEN 100 AND 999)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

-- attempt_at is the saga's next_attempt_at that caused the job, so a second job for one attempt collides. It also
-- serves what asks for the jobs of a saga.
CREATE UNIQUE INDEX uniq_job_saga_attempt ON webhook_delivery_jobs (saga_id, attempt_at);

-- At most one active job for a saga. Where autovacuum looked at the jobs in a quiet moment, it found none that waits.
-- From then on the planner takes it that one waits at the most, and that any index that holds it will do: it read this
-- one, which has no order, and sorted. Of a backlog it read all, at each step. IS TRUE changes nothing for the rows;
-- the planner cannot see through it, and leaves the index to what it is for (decision 50).
CREATE UNIQUE INDEX uniq_job_saga_active ON webhook_delivery_jobs (saga_id)
    WHERE (status IN ('Pending', 'Leased')) IS TRUE;

-- What the lease cleaner asks: leases that are over. Waiting jobs are in the indexes that a claim and a dispatch ask.
CREATE INDEX idx_job_status_lease ON webhook_delivery_jobs (status, lease_until) WHERE status = 'Leased';

-- What a claim asks: the oldest waiting jobs of one subscription, first attempts (lane 1) apart from retries (lane 2),
-- so that neither a slow endpoint nor a storm of retries stands in the way of the others.
CREATE INDEX idx_job_pending ON webhook_delivery_jobs (least(attempt_number, 2), subscription_id, id)
    WHERE status = 'Pending';

-- What the orchestrator's sweep asks in SQS mode: waiting jobs that were never sent to a queue, or so long ago that the
-- message must be lost.
CREATE INDEX idx_job_dispatch ON webhook_delivery_jobs (dispatched_at) WHERE (status = 'Pending') IS TRUE;

-- What the orchestrator asks: results that no saga has taken yet.
CREATE INDEX idx_job_unapplied ON webhook_delivery_jobs (id)
    WHERE applied_at IS NULL AND status IN ('Completed', 'Failed');

-- Rates and the attempt log run by time, of all or of one subscription.
CREATE INDEX idx_job_finished ON webhook_delivery_jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX idx_job_subscription_finished ON webhook_delivery_jobs (subscription_id, finished_at)
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

-- A receiver that answered 410 is found at once, not when its attempts are counted.
CREATE INDEX idx_job_gone ON webhook_delivery_jobs (finished_at) WHERE error_code = 'http_410';
