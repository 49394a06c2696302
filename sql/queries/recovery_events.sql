-- name: lock_recovered
-- Endpoints of which an event said that they fail, or were disabled, and that have succeeded since: after the run of
-- failures began, and after the subscription was activated again.
SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.told_failing_since AS failing_since,
       h.last_success_at AS recovered_at
  FROM subscription_health h
  JOIN subscriptions s ON s.id = h.subscription_id
 WHERE h.told_failing_since IS NOT NULL AND h.disabled_at IS NULL
   AND h.last_success_at > h.told_failing_since AND h.last_success_at >= h.watched_since
   AND s.deleted_at IS NULL
 ORDER BY s.id LIMIT %(limit)s
   FOR NO KEY UPDATE OF h SKIP LOCKED;

-- name: note_recovered
-- A run of failures that has begun since is told as a new one.
UPDATE subscription_health SET told_failing_since = NULL WHERE subscription_id = ANY (%(subscription_ids)s::bigint[])
RETURNING subscription_id AS id;
