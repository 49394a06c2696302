-- Retention (decision 37) deletes finished work of a given age. It never deletes events, dead letters, the saga of a
-- dead letter, or the saga that a requeue started, so that a second requeue finds it.

-- The record of what was deleted. Completed sagas, and jobs of ended sagas, from before the horizon may be missing;
-- from the horizon on everything is present. Null: nothing was ever deleted.
CREATE TABLE retention_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    horizon timestamptz,
    moved_at timestamptz,
    CONSTRAINT there_is_only_one_row CHECK (only_row)
);

INSERT INTO retention_state DEFAULT VALUES;

-- load: functions/retention_horizon.sql
-- load: functions/prune_finished.sql

-- Since when the pipeline has been working on this database; null while it is stopped. The audit judges waiting times
-- by it: in a restored or stopped database sagas and leases wait because nothing processes them.
CREATE TABLE work_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    at_work_since timestamptz,
    CONSTRAINT there_is_one_state CHECK (only_row)
);

-- load: functions/give_retention_its_owner.sql
