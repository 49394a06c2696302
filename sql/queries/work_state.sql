-- Whether the pipeline is at work on the database, for the audit: how long something waits says nothing where nothing
-- works, as after a restore. A row that somebody else has locked is left as it is.

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
