-- Retention (decision 90) deletes what ended long ago: deliveries with their attempts, dead letters, payloads, events,
-- each by an age of its own. It never deletes open work, a dead letter without its whole pair, or an event that
-- something still refers to.

-- What may be missing. Deliveries that ended before horizon, and events accepted before event_horizon, may be deleted;
-- payloads of events accepted before payload_horizon may be. From the horizon on everything is present. Null: nothing
-- of that kind was ever deleted. Every batch holds this row, and so does each transaction that starts a delivery of an old event, so
-- that neither acts on what the other is changing.
CREATE TABLE retention_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    horizon timestamptz,
    event_horizon timestamptz,
    payload_horizon timestamptz,
    moved_at timestamptz,
    CONSTRAINT there_is_only_one_row CHECK (only_row)
);

INSERT INTO retention_state DEFAULT VALUES;

-- How far each kind was looked through, in the order of its time: everything up to here was deleted, or had to stay.
-- Payloads and events continue after this place. Null: nothing was looked at yet. keep: the age that is applied now,
-- written by the process that runs retention; null: rows of this kind are kept for ever.
CREATE TABLE retention_progress (
    kind varchar(20) PRIMARY KEY,
    keep interval,
    looked_at timestamptz,
    looked_id bigint NOT NULL DEFAULT 0,
    CONSTRAINT kind_is_known CHECK (kind IN ('deliveries', 'dead_letters', 'payloads', 'events'))
) WITH (fillfactor = 50);

INSERT INTO retention_progress (kind) VALUES ('deliveries'), ('dead_letters'), ('payloads'), ('events');

-- Events that a walk passed although they were old enough, because something was open or locked. The next batches of that
-- kind look at them again.
CREATE TABLE retention_left (
    kind varchar(20) NOT NULL,
    event_id bigint NOT NULL,
    PRIMARY KEY (kind, event_id)
);

-- What was deleted on each day (UTC), by kind of row and outcome: the status of a delivery or an attempt, the error
-- code of a dead letter, '' for events and payloads. horizon: the latest age limit that was applied on that day.
CREATE TABLE retention_days (
    day date NOT NULL,
    kind varchar(20) NOT NULL,
    outcome varchar(100) NOT NULL,
    deleted bigint NOT NULL,
    horizon timestamptz NOT NULL,
    PRIMARY KEY (day, kind, outcome)
) WITH (fillfactor = 50);

-- load: functions/retention_horizon.sql
-- load: functions/plan_retention.sql
-- load: functions/begin_retention_batch.sql
-- load: functions/note_deleted.sql
-- load: functions/prune_passed_events.sql
-- load: functions/lock_whole_pairs.sql
-- load: functions/lock_content.sql
-- load: functions/prune_finished.sql
-- load: functions/prune_dead_letters.sql
-- load: functions/remove_payloads.sql
-- load: functions/prune_events.sql

-- Erasures (decision 91): everything that the producer sent is removed from one event, or from all events that a tenant
-- had when the request was made, or of those that have an attribute. The row is the record of who wanted it and why, and of what was removed, and the progress
-- of the work: any process can execute the next step. event_id: one event; null: all of the tenant up to until_id.
-- left_from: the first event of this pass that had to be left, because a row was locked; a pass that left any is followed
-- by another. ended: waiting deliveries that ended as dead letters; in_flight: attempts that a worker held at that time,
-- whose request could not be recalled. attribute_values: the values of which an event must have one, as JSON. They may
-- name a person, so they go when the erasure is completed.
CREATE TYPE erasure_status AS ENUM ('Running', 'Completed');

CREATE TABLE erasures (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id varchar(100) NOT NULL,
    event_id bigint,
    webhook_id uuid,
    attribute_name varchar(64),
    attribute_values jsonb,
    status erasure_status NOT NULL DEFAULT 'Running',
    reason varchar(500) NOT NULL,
    created_by varchar(100) NOT NULL,
    created_by_key_id bigint REFERENCES api_keys (id),
    until_id bigint NOT NULL,
    after_id bigint NOT NULL DEFAULT 0,
    left_from bigint,
    events bigint NOT NULL DEFAULT 0,
    dead_letters bigint NOT NULL DEFAULT 0,
    attempts bigint NOT NULL DEFAULT 0,
    ended bigint NOT NULL DEFAULT 0,
    in_flight bigint NOT NULL DEFAULT 0,
    steps bigint NOT NULL DEFAULT 0,
    last_step_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    CONSTRAINT an_erasure_has_a_reason CHECK (reason <> ''),
    CONSTRAINT one_event_is_named_in_both_forms CHECK (num_nonnulls(event_id, webhook_id) IN (0, 2)),
    CONSTRAINT one_event_has_no_attribute CHECK (num_nonnulls(event_id, attribute_name) < 2),
    CONSTRAINT a_running_erasure_knows_its_values CHECK (
        num_nonnulls(attribute_values)
            = CASE status WHEN 'Running' THEN num_nonnulls(attribute_name) ELSE 0 END),
    CONSTRAINT a_completed_erasure_has_its_time CHECK ((status = 'Completed') = (finished_at IS NOT NULL))
) WITH (fillfactor = 70);

-- A repeated call returns the erasure that the first one started.
CREATE UNIQUE INDEX uniq_erasure_running
    ON erasures (tenant_id, coalesce(event_id, 0), coalesce(attribute_name, ''),
                 coalesce(jsonb_hash_extended(attribute_values, 0), 0))
    WHERE status = 'Running';
CREATE INDEX idx_erasure_tenant ON erasures (tenant_id, id);

-- load: functions/start_erasure.sql
-- load: functions/erase_events.sql
-- load: functions/step_erasure.sql

-- Since when the pipeline has been working on this database; null while it is stopped. The audit judges waiting times
-- by it: in a restored or stopped database sagas and leases wait because nothing processes them.
CREATE TABLE work_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    at_work_since timestamptz,
    CONSTRAINT there_is_one_state CHECK (only_row)
);

-- load: functions/give_retention_its_owner.sql
