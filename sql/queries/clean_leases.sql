-- name: reset_expired_leases
-- A lease that is over goes back to Pending, the same row and the same attempt; after max_claims claims it
-- becomes Failed instead (r02 §2.4, spec D7). Repeating it changes nothing more.
WITH expired AS MATERIALIZED (
    SELECT id, lease_until FROM webhook_delivery_jobs
     WHERE status = 'Leased' AND lease_until < now()
     ORDER BY lease_until LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE webhook_delivery_jobs j
   SET status = CASE WHEN j.claim_count < %(max_claims)s THEN 'Pending' ELSE 'Failed' END::job_status,
       error_code = CASE WHEN j.claim_count < %(max_claims)s THEN NULL ELSE 'lease_expired' END,
       lease_until = CASE WHEN j.claim_count >= %(max_claims)s THEN j.lease_until END,
       dispatched_at = NULL
  FROM expired WHERE j.id = expired.id
RETURNING j.id, j.saga_id, j.subscription_id, j.status, j.worker_id, j.claim_count, expired.lease_until;
