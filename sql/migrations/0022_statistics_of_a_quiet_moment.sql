-- Where autovacuum looked at the jobs in a quiet moment, it found none that waits. From then on the planner takes it that
-- one waits at the most, and that any index that holds it will do: it read this one, which has no order, and sorted. Of
-- a backlog it read all, at each step. IS TRUE changes nothing for the rows; the planner cannot see through it, and
-- leaves the index to what it is for.
CREATE UNIQUE INDEX uniq_job_saga_open ON webhook_delivery_jobs (saga_id)
    WHERE (status IN ('Pending', 'Leased')) IS TRUE;
DROP INDEX uniq_job_saga_active;
ALTER INDEX uniq_job_saga_open RENAME TO uniq_job_saga_active;
