-- name: prune_finished
SELECT sagas, jobs, before, last_finished_at, last_job_id
  FROM prune_finished(%(older_than)s::interval, %(limit)s::integer, %(after_finished_at)s::timestamptz,
                      %(after_job_id)s::bigint, %(dry_run)s::boolean);
