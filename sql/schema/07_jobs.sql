-- One job is one attempt to deliver one payload to one subscription. The jobs are also the attempt log.
--
-- attempt_at: the saga's next_attempt_at that caused the job. While the saga is in progress both are equal, so they say
-- which job is the current one and whose result is still to be applied (decision 109). max_attempts: the saga's limit of
-- attempts when this one began. own_header_names: the names of the subscription's
-- custom headers, separated by spaces; their values are secrets, and the subscription may have changed since. The
-- other headers follow from the event and the attempt and are rebuilt on reading: storing them would nearly double
-- the cost of a result (decision 35). Null: the attempt sent nothing. erased: its event was erased, so no answer is stored,
-- and a failure is the last. response_headers: one line each, up to 4 KiB, values of cookies masked: a receiver's support
-- asks for its request id. sent_format: the subscription's format when the attempt was sent; null for the payload alone.
CREATE TYPE job_status AS ENUM ('Pending', 'Leased', 'Completed', 'Failed');

CREATE TABLE webhook_delivery_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga_id bigint NOT NULL REFERENCES webhook_delivery_sagas (id),
    subscription_id bigint NOT NULL,
    attempt_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    attempt_number integer NOT NULL,
    max_attempts smallint,
    slow boolean NOT NULL DEFAULT false,
    erased boolean NOT NULL DEFAULT false,
    status job_status NOT NULL DEFAULT 'Pending',
    claim_count integer NOT NULL DEFAULT 0,
    lease_until timestamptz,
    leased_at timestamptz,
    dispatched_at timestamptz,
    finished_at timestamptz,
    lost_leases integer NOT NULL DEFAULT 0,
    duration_ms integer,
    retry_after_seconds integer,
    response_status integer,
    response_truncated boolean NOT NULL DEFAULT false,
    -- A reused connection closed before the first byte of an answer, and the POST was sent again over a new one.
    reconnected boolean NOT NULL DEFAULT false,
    worker_id varchar(100),
    resolved_ip inet,
    error_code varchar(100),
    sent_format varchar(30),
    own_header_names text,
    response_body text,
    response_headers text,
    CONSTRAINT attempt_number_is_positive CHECK (attempt_number >= 1),
    CONSTRAINT response_status_in_range CHECK (response_status BETWEEN 100 AND 999)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

-- A second job for one attempt conflicts. Also serves lookups by saga.
CREATE UNIQUE INDEX uniq_job_saga_attempt ON webhook_delivery_jobs (saga_id, attempt_at);

-- At most one active job per saga. After autovacuum has analyzed the jobs in an idle time, the planner expects at
-- most one waiting job and considers every index that contains it equal: it used this one, which has no order, and
-- read and sorted the whole backlog in each step. IS TRUE does not change which rows match, and hides the index from
-- such queries (decision 50).
CREATE UNIQUE INDEX uniq_job_saga_active ON webhook_delivery_jobs (saga_id)
    WHERE (status IN ('Pending', 'Leased')) IS TRUE;

-- The lease cleaner: expired leases.
CREATE INDEX idx_job_status_lease ON webhook_delivery_jobs (status, lease_until) WHERE status = 'Leased';

-- Claims: the oldest waiting jobs of one lane. Jobs of slow subscriptions have a lane of their own, so that they never
-- block the others. Ordered by attempt_at, which no other index has, because the planner would otherwise read the
-- primary key from its start.
CREATE INDEX idx_job_pending ON webhook_delivery_jobs (slow, attempt_at, id)
    WHERE status = 'Pending';

-- The orchestrator's sweep in SQS mode: waiting jobs that were never sent to a queue, or whose message must be lost.
CREATE INDEX idx_job_dispatch ON webhook_delivery_jobs (dispatched_at) WHERE (status = 'Pending') IS TRUE;

-- Rates and the attempt log, by time: of all subscriptions or of one.
CREATE INDEX idx_job_finished ON webhook_delivery_jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX idx_job_subscription_finished ON webhook_delivery_jobs (subscription_id, finished_at)
    WHERE finished_at IS NOT NULL;

-- Failed attempts: by subscription, by error code, and by the first digit of the status (0 without an answer). Small
-- while endpoints are healthy.
CREATE INDEX idx_job_failed_subscription ON webhook_delivery_jobs (subscription_id, finished_at, id)
    WHERE status = 'Failed';
CREATE INDEX idx_job_failed_error ON webhook_delivery_jobs (error_code, finished_at, id)
    WHERE status = 'Failed';
CREATE INDEX idx_job_failed_class ON webhook_delivery_jobs
    ((coalesce(response_status / 100, 0)), finished_at, id)
    WHERE status = 'Failed';

-- An endpoint that answered 410 is found at once, before its attempts are counted.
CREATE INDEX idx_job_gone ON webhook_delivery_jobs (finished_at) WHERE error_code = 'http_410';
