-- Retention (decision 90) deletes what ended long ago: deliveries with their attempts, dead letters, payloads, events,
-- each by an age of its own. It never deletes open work, a dead letter without its whole pair, or an event that
-- something still refers to.

-- What may be missing. Deliveries that ended before horizon, and events accepted before event_horizon, may be deleted;
-- payloads of events accepted before payload_horizon may be. From the horizon on everything is present. Null: nothing
-- of that kind was ever deleted. Every batch holds this row, and so does whoever starts a delivery of an old event, so
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
-- written by whoever runs retention; null: rows of this kind are kept for ever.
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

-- Since when the pipeline has been working on this database; null while it is stopped. The audit judges waiting times
-- by it: in a restored or stopped database sagas and leases wait because nothing processes them.
CREATE TABLE work_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    at_work_since timestamptz,
    CONSTRAINT there_is_one_state CHECK (only_row)
);

-- load: functions/give_retention_its_owner.sql
