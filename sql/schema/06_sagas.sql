-- One saga is the delivery of one event to one subscription, with all its attempts. A trigger checks that both exist,
-- without a lock (decision 59). bulk_operation_id: the operation that started it, if any.
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
    bulk_operation_id bigint CONSTRAINT started_by_a_bulk_operation REFERENCES bulk_operations (id),
    CONSTRAINT attempt_count_is_not_negative CHECK (attempt_count >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

-- A delivery updates its saga three times, and each update writes to every index that contains the row. So no two
-- indexes serve the same query, and finished sagas, most of the table, are excluded from the indexes that find work
-- (decision 38).

-- Makes routing idempotent: a pair exists once from routing, and once per requeue. Also serves lookups by event.
CREATE UNIQUE INDEX uniq_saga_event_subscription ON webhook_delivery_sagas
    (event_id, subscription_id, coalesce(requeued_from, 0));

-- Requeueing a dead letter twice returns the same saga.
CREATE UNIQUE INDEX uniq_saga_requeued_from ON webhook_delivery_sagas (requeued_from)
    WHERE requeued_from IS NOT NULL;

-- Sagas with an active attempt; waiting sagas are in the next index.
CREATE INDEX idx_saga_status ON webhook_delivery_sagas (status) WHERE status = 'InProgress';
CREATE INDEX idx_saga_status_retry ON webhook_delivery_sagas (status, next_attempt_at)
    WHERE status IN ('Pending', 'PendingRetry');

-- The backlog of one subscription and its next attempt. With statistics from an idle time the planner considers all
-- indexes of waiting sagas equal, and sometimes used this one, whose order differs. IS TRUE does not change which
-- rows match, and hides the index from queries that do not repeat it (decision 50).
CREATE INDEX idx_saga_retry_subscription ON webhook_delivery_sagas (subscription_id, next_attempt_at)
    WHERE (status = 'PendingRetry') IS TRUE;

-- A step of a bulk operation counts per lane the sagas that it started and that are active or wait for a retry.
CREATE INDEX idx_saga_bulk_open ON webhook_delivery_sagas (subscription_id)
    WHERE bulk_operation_id IS NOT NULL AND status IN ('InProgress', 'PendingRetry');
