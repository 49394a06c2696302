-- One saga: the delivery of one event to one subscription, with all its attempts. That these exist is checked without a
-- lock, by a guard (decision 59). bulk_operation_id: which operation started it; null for all others.
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

-- A delivery writes its saga three times, and each time again into every index that the row is in: what one index
-- answers is kept in no second one, and finished sagas, most of the table, stay out of what looks for work (decision
-- 38).

-- Routing is idempotent by this index: a pair once for routing, and once for each requeue. It also serves what asks for
-- the sagas of an event.
CREATE UNIQUE INDEX uniq_saga_event_subscription ON webhook_delivery_sagas
    (event_id, subscription_id, coalesce(requeued_from, 0));

-- Requeueing one dead letter twice gives the same saga.
CREATE UNIQUE INDEX uniq_saga_requeued_from ON webhook_delivery_sagas (requeued_from)
    WHERE requeued_from IS NOT NULL;

-- Those with an attempt under way; those that wait are in the next one.
CREATE INDEX idx_saga_status ON webhook_delivery_sagas (status) WHERE status = 'InProgress';
CREATE INDEX idx_saga_status_retry ON webhook_delivery_sagas (status, next_attempt_at)
    WHERE status IN ('Pending', 'PendingRetry');

-- When one subscription is tried again, and how much waits for that. After statistics of a quiet moment any index of
-- what waits will do for a look, as the planner sees it, and at times it read this one, which has it in another order.
-- IS TRUE changes nothing for the rows, and hides the index from all that does not ask for it so (decision 50).
CREATE INDEX idx_saga_retry_subscription ON webhook_delivery_sagas (subscription_id, next_attempt_at)
    WHERE (status = 'PendingRetry') IS TRUE;

-- What a step of a bulk operation asks of each lane: how much of what was started for its subscription is under way or
-- waits for a retry.
CREATE INDEX idx_saga_bulk_open ON webhook_delivery_sagas (subscription_id)
    WHERE bulk_operation_id IS NOT NULL AND status IN ('InProgress', 'PendingRetry');
