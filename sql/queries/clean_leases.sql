-- part: lose_leases_of_held
UPDATE webhook_delivery_jobs j
   SET status = CASE WHEN j.lost_leases + 1 < %(max_lost_leases)s THEN 'Pending' ELSE 'Failed' END::job_status,
       error_code = CASE WHEN j.lost_leases + 1 < %(max_lost_leases)s THEN NULL ELSE 'lease_expired' END,
       lost_leases = j.lost_leases + 1, lease_until = NULL, dispatched_at = NULL
  FROM held WHERE j.id = held.id
RETURNING j.id, j.saga_id, j.subscription_id, j.status, j.worker_id, j.claim_count, j.lost_leases, held.lease_until;

-- name: reset_expired_leases
-- An expired lease is lost: the job returns to Pending, the same row and the same attempt. Lost lease number
-- max_lost_leases makes it Failed instead. Claims that were handed back are not counted, because no worker died of them
-- (decision 60). Jobs whose results the caller holds are skipped, so that the results are written. Running it again
-- changes nothing more.
WITH held AS MATERIALIZED (
    SELECT id, lease_until FROM webhook_delivery_jobs
     WHERE status = 'Leased' AND lease_until < now() AND id <> ALL (%(in_hand)s::bigint[])
       AND (%(job_ids)s::bigint[] IS NULL OR id = ANY (%(job_ids)s::bigint[]))
     ORDER BY lease_until LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
)
-- insert: lose_leases_of_held

-- name: expired_leases
-- The same jobs, to find the one whose reset the database rejects.
SELECT id AS job_id, saga_id, subscription_id FROM webhook_delivery_jobs
 WHERE status = 'Leased' AND lease_until < now() AND id <> ALL (%(in_hand)s::bigint[])
 ORDER BY lease_until LIMIT %(limit)s;

-- name: lease_holders
-- The workers that hold leases, except one. Reads one row per leased job.
SELECT DISTINCT worker_id
  FROM (SELECT worker_id FROM webhook_delivery_jobs
         WHERE status = 'Leased' AND worker_id <> %(but_for)s LIMIT %(limit)s) AS leased;

-- name: give_back_leases
-- Resets the leases of workers whose processes have ended: lost now, before they expire, and counted once each.
WITH held AS MATERIALIZED (
    SELECT id, lease_until FROM webhook_delivery_jobs
     WHERE status = 'Leased' AND worker_id = ANY (%(worker_ids)s::text[])
     ORDER BY lease_until LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
)
-- insert: lose_leases_of_held
