-- One saga is the delivery of one event to one subscription, with all its attempts. A trigger checks that both exist,
-- without a lock (decision 59). bulk_operation_id: the operation that started it, if any. ordering_key: set by the
-- router for an ordered subscription, '' for an event without one; null: outside of the order. resent_from: the ended
-- saga that this one sends again, by a requeue or a resend; retention may have deleted it. requeued_from: its dead
-- letter, if this is the requeue of it.
CREATE TYPE saga_status AS ENUM ('Pending', 'InProgress', 'PendingRetry', 'Completed', 'DeadLettered');

CREATE TABLE webhook_delivery_sagas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    status saga_status NOT NULL DEFAULT 'Pending',
    attempt_count integer NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT now(),
    requeued_from bigint,
    resent_from bigint,
    final_error_code varchar(100),
    ordering_key varchar(255),
    bulk_operation_id bigint CONSTRAINT started_by_a_bulk_operation REFERENCES bulk_operations (id),
    CONSTRAINT attempt_count_is_not_negative CHECK (attempt_count >= 0)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05);

-- A delivery updates its saga three times, and each update writes to every index that contains the row. So no two
-- indexes serve the same query, and finished sagas, most of the table, are excluded from the indexes that find work
-- (decision 38).

-- Makes routing idempotent: a pair has one first saga, and any number that send it again. Also serves lookups by event.
CREATE UNIQUE INDEX uniq_saga_event_subscription ON webhook_delivery_sagas
    (event_id, subscription_id, (CASE WHEN requeued_from IS NULL AND resent_from IS NULL THEN 0 ELSE id END));

-- Requeueing a dead letter twice returns the same saga.
CREATE UNIQUE INDEX uniq_saga_requeued_from ON webhook_delivery_sagas (requeued_from)
    WHERE requeued_from IS NOT NULL;

-- Resending a saga twice returns the same saga until that one has ended.
CREATE UNIQUE INDEX uniq_saga_resent_open ON webhook_delivery_sagas (resent_from)
    WHERE resent_from IS NOT NULL AND status IN ('Pending', 'InProgress', 'PendingRetry');

-- Sagas in progress: how many each subscription has, which its room limits, and those whose result nobody has applied.
CREATE INDEX idx_saga_status ON webhook_delivery_sagas (subscription_id, id) WHERE status = 'InProgress';

-- Waiting sagas of one subscription, outside of the order (0) apart from ordered ones (1), by the time they are due.
-- status: so that what waits is counted by its kind without reading the rows.
CREATE INDEX idx_saga_status_retry ON webhook_delivery_sagas
    (subscription_id, num_nonnulls(ordering_key), next_attempt_at, id) INCLUDE (status)
    WHERE status IN ('Pending', 'PendingRetry');

-- The first saga of each ordering key that has not ended: only that one may start, and one at a time.
CREATE INDEX idx_saga_order ON webhook_delivery_sagas (subscription_id, ordering_key, event_id)
    WHERE ordering_key IS NOT NULL AND status IN ('Pending', 'InProgress', 'PendingRetry');
CREATE UNIQUE INDEX uniq_saga_order ON webhook_delivery_sagas (subscription_id, ordering_key)
    WHERE ordering_key IS NOT NULL AND status = 'InProgress';

-- A step of a bulk operation counts per lane the sagas that it started and that have not ended.
CREATE INDEX idx_saga_bulk_open ON webhook_delivery_sagas (subscription_id)
    WHERE bulk_operation_id IS NOT NULL AND status IN ('Pending', 'InProgress', 'PendingRetry');

-- Outcomes of a bulk operation: all of its sagas but the Completed ones, which are the rest of `done`. Few in a healthy one.
CREATE INDEX idx_saga_bulk_outcome ON webhook_delivery_sagas (bulk_operation_id, subscription_id) INCLUDE (status)
    WHERE bulk_operation_id IS NOT NULL AND status IN ('Pending', 'InProgress', 'PendingRetry', 'DeadLettered');

-- load: functions/is_to_resend.sql
-- load: functions/bulk_operation_fails.sql
