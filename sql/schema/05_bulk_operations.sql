-- Bulk operations requeue many dead letters, resend many ended deliveries, or backfill old events to one subscription,
-- at a steady rate. Their rows hold the request, its author and its progress; any process can execute the next step.
CREATE TYPE bulk_kind AS ENUM ('requeue', 'backfill', 'resend');
CREATE TYPE bulk_status AS ENUM ('Running', 'Paused', 'Stopped', 'Completed');

-- until_id: dead letters (or events, or for a resend sagas) with a greater id are excluded, so a delivery that fails
-- again is not requeued in a loop. last_slot_at: the next_attempt_at of the newest saga that the operation started; the next one follows 1
-- / rate_per_second later. tenant_id null: all tenants. stop_reason: why it stopped by itself.
CREATE TABLE bulk_operations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind bulk_kind NOT NULL,
    status bulk_status NOT NULL DEFAULT 'Running',
    tenant_id varchar(100),
    filter jsonb NOT NULL,
    rate_per_second double precision NOT NULL,
    reason varchar(500) NOT NULL DEFAULT '',
    created_by varchar(100) NOT NULL,
    created_by_key_id bigint REFERENCES api_keys (id),
    until_id bigint NOT NULL,
    matched bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    steps bigint NOT NULL DEFAULT 0,
    last_slot_at timestamptz,
    last_step_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    stop_reason varchar(100),
    CONSTRAINT rate_in_range CHECK (rate_per_second BETWEEN 0.01 AND 1000),
    CONSTRAINT only_stopped_operations_have_a_stop_reason CHECK (stop_reason IS NULL OR status = 'Stopped'),
    CONSTRAINT filter_is_an_object CHECK (jsonb_typeof(filter) = 'object'),
    CONSTRAINT counts_are_not_negative CHECK (matched >= 0 AND done >= 0 AND skipped >= 0),
    CONSTRAINT ended_operations_have_their_time CHECK (
        (status IN ('Stopped', 'Completed')) = (finished_at IS NOT NULL))
);

-- A repeated call returns the operation that the first one started.
CREATE UNIQUE INDEX uniq_bulk_open ON bulk_operations (kind, coalesce(tenant_id, ''), filter)
    WHERE status IN ('Running', 'Paused');
CREATE INDEX idx_bulk_running ON bulk_operations (last_step_at NULLS FIRST, id) WHERE status = 'Running';

-- One lane per subscription of an operation. Lanes are served in turn, each with its own position, so an inactive,
-- slow or overloaded subscription does not block the others. after_at is used for events, which are ordered by
-- (created_at, id), and for a resend by last attempts, ordered by (finished_at, id); dead letters are ordered by id.
CREATE TABLE bulk_operation_lanes (
    operation_id bigint NOT NULL REFERENCES bulk_operations (id),
    subscription_id bigint NOT NULL,
    turn bigint NOT NULL DEFAULT 0,
    after_at timestamptz NOT NULL DEFAULT '-infinity',
    after_id bigint NOT NULL DEFAULT 0,
    matched bigint NOT NULL,
    done bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    finished boolean NOT NULL DEFAULT false,
    PRIMARY KEY (operation_id, subscription_id)
);

CREATE INDEX idx_lane_turn ON bulk_operation_lanes (operation_id, turn, subscription_id) WHERE NOT finished;

-- load: functions/count_bulk_lanes.sql
-- load: functions/start_bulk_operation.sql
-- load: functions/find_bulk_candidates.sql
-- load: functions/step_bulk_operation.sql
-- load: functions/move_bulk_operation.sql
-- load: functions/pace_bulk_operation.sql
