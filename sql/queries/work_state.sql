-- Whether the pipeline is at work on the database, for the audit: waiting times mean nothing while no process works, as
-- after a restore. A row that another session has locked stays unchanged.

-- name: begin_work
WITH resting AS MATERIALIZED (
    SELECT only_row FROM work_state WHERE at_work_since IS NULL FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE work_state w SET at_work_since = now() FROM resting WHERE w.only_row = resting.only_row;

-- name: end_work
WITH working AS MATERIALIZED (
    SELECT only_row FROM work_state WHERE at_work_since IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE work_state w SET at_work_since = NULL FROM working WHERE w.only_row = working.only_row;

-- name: show_work
SELECT at_work_since IS NULL AS at_rest FROM work_state;
