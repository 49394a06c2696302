-- One job: one attempt to deliver one payload to one subscription. It is the attempt log too.
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
    CONSTRAINT attempt_number_is_positive CHECK (attempt_number >= 1),
    CONSTRAINT response_status_in_range CHECK (response_status BETWEEN 100 AND 999)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX idx_job_saga ON webhook_delivery_jobs (saga_id);

-- attempt_at is the saga's next_attempt_at that caused the job, so a second job for one attempt collides.
CREATE UNIQUE INDEX uniq_job_saga_attempt ON webhook_delivery_jobs (saga_id, attempt_at);

-- At most one active job for a saga.
CREATE UNIQUE INDEX uniq_job_saga_active ON webhook_delivery_jobs (saga_id)
    WHERE status IN ('Pending', 'Leased');

-- What the lease cleaner asks: leases that are over. Finished jobs stay out of it.
CREATE INDEX idx_job_status_lease ON webhook_delivery_jobs (status, lease_until)
    WHERE status IN ('Pending', 'Leased');

-- What a claim asks: the oldest waiting jobs of one subscription, first attempts apart from retries, so
-- that neither a slow endpoint nor a storm of retries stands in the way of the others.
CREATE INDEX idx_job_pending_first ON webhook_delivery_jobs (subscription_id, id)
    WHERE status = 'Pending' AND attempt_number = 1;
CREATE INDEX idx_job_pending_retry ON webhook_delivery_jobs (subscription_id, id)
    WHERE status = 'Pending' AND attempt_number > 1;

-- Rates and the attempt log run by time.
CREATE INDEX idx_job_finished ON webhook_delivery_jobs (finished_at) WHERE finished_at IS NOT NULL;

-- What the orchestrator asks: results that no saga has taken yet.
CREATE INDEX idx_job_unapplied ON webhook_delivery_jobs (id)
    WHERE applied_at IS NULL AND status IN ('Completed', 'Failed');
