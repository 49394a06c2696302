-- One saga: the delivery of one event to one subscription, with all its attempts. That these exist is checked
-- without a lock, by a trigger in 0008 (decision 59).
CREATE TYPE saga_status AS ENUM ('Pending', 'InProgress', 'PendingRetry', 'Completed', 'DeadLettered');

CREATE TABLE webhook_delivery_sagas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    status saga_status NOT NULL DEFAULT 'Pending',
    attempt_count integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    final_error_code varchar(100),
    requeued_from bigint,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT attempt_count_is_not_negative CHECK (attempt_count >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX idx_saga_event ON webhook_delivery_sagas (event_id, subscription_id);

-- Routing is idempotent by this index; a requeued saga repeats the pair, so it is left out.
CREATE UNIQUE INDEX uniq_saga_event_subscription ON webhook_delivery_sagas (event_id, subscription_id)
    WHERE requeued_from IS NULL;

-- Requeueing one dead letter twice gives the same saga.
CREATE UNIQUE INDEX uniq_saga_requeued_from ON webhook_delivery_sagas (requeued_from)
    WHERE requeued_from IS NOT NULL;

-- Finished sagas are most of the table and nobody looks for them by status: they stay out of these two.
CREATE INDEX idx_saga_status ON webhook_delivery_sagas (status)
    WHERE status IN ('Pending', 'InProgress', 'PendingRetry');
CREATE INDEX idx_saga_status_retry ON webhook_delivery_sagas (status, next_attempt_at)
    WHERE status IN ('Pending', 'PendingRetry');
