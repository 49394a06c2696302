-- Retention (decision 37): finished work that is old enough may be deleted. Never events, dead letters, or what a dead
-- letter still needs: its saga, and the saga that a requeue of it started, so that a second requeue finds it.

-- The one fact that is left of what was deleted. Before this moment Completed sagas, and jobs of sagas that had ended,
-- may be missing; from it on everything is there. Null: nothing was ever deleted.
CREATE TABLE retention_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    horizon timestamptz,
    moved_at timestamptz,
    CONSTRAINT there_is_only_one_row CHECK (only_row)
);

INSERT INTO retention_state DEFAULT VALUES;

-- load: functions/retention_horizon.sql
-- load: functions/prune_finished.sql

-- Since when the pipeline is at work on this database; null while it is at rest. The audit judges how long sagas and
-- leases wait by it: in a database that was restored from a dump, or was stopped, they wait because nobody works.
CREATE TABLE work_state (
    only_row boolean PRIMARY KEY DEFAULT true,
    at_work_since timestamptz,
    CONSTRAINT there_is_one_state CHECK (only_row)
);

-- load: functions/give_retention_its_owner.sql
