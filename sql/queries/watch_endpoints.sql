-- name: count_attempts
-- Counts the next uncounted attempts, each exactly once: the mark moves in the same statement, and a second monitor
-- finds it locked and does nothing. Only attempts that finished settle_seconds ago are counted: a result has the time
-- of its statement and becomes visible at its commit, which has certainly happened by then. The rows are locked before
-- they are read again, so that a reset of the count (watched_since) that commits meanwhile is respected. If another
-- session has locked the health of an endpoint, the time from which its attempts are uncounted is noted; they are
-- counted separately, at most as many at a time, once the lock is released.
WITH mark AS MATERIALIZED (
    SELECT counted_until, now() - make_interval(secs => %(settle_seconds)s) AS settled_until
      FROM subscription_health_mark FOR NO KEY UPDATE SKIP LOCKED
), slice AS MATERIALIZED (
    SELECT CASE WHEN count(j.finished_at) = %(limit)s THEN max(j.finished_at) ELSE max(mark.settled_until) END AS until,
           count(j.finished_at) AS size
      FROM mark LEFT JOIN LATERAL (
          SELECT finished_at FROM webhook_delivery_jobs
           WHERE finished_at > mark.counted_until AND finished_at <= mark.settled_until
           ORDER BY finished_at LIMIT %(limit)s) AS j ON true
     WHERE mark.settled_until > mark.counted_until
), behind AS MATERIALIZED (
    SELECT late.subscription_id, late.counted_until AS since, goal.until AS goal, part.until
      FROM (SELECT greatest(max(slice.until), max(mark.counted_until)) AS until
              FROM mark LEFT JOIN slice ON true HAVING count(*) > 0) AS goal
     CROSS JOIN LATERAL (
          SELECT subscription_id, counted_until FROM subscription_health_behind
           ORDER BY subscription_id LIMIT 100 FOR UPDATE SKIP LOCKED) AS late
     CROSS JOIN LATERAL (
          SELECT CASE WHEN count(*) = %(limit)s THEN max(j.finished_at) ELSE goal.until END AS until
            FROM (SELECT finished_at FROM webhook_delivery_jobs
                   WHERE subscription_id = late.subscription_id
                     AND finished_at > late.counted_until AND finished_at <= goal.until
                   ORDER BY finished_at LIMIT %(limit)s) AS j) AS part
), attempt AS MATERIALIZED (
    SELECT j.subscription_id, j.leased_at, j.finished_at, j.status, j.error_code
      FROM mark CROSS JOIN slice CROSS JOIN LATERAL (
          SELECT subscription_id, leased_at, finished_at, status, error_code FROM webhook_delivery_jobs
           WHERE finished_at > mark.counted_until AND finished_at <= slice.until) AS j
     WHERE NOT EXISTS (SELECT FROM subscription_health_behind b WHERE b.subscription_id = j.subscription_id)
    UNION ALL
    SELECT j.subscription_id, j.leased_at, j.finished_at, j.status, j.error_code
      FROM behind b CROSS JOIN LATERAL (
          SELECT subscription_id, leased_at, finished_at, status, error_code FROM webhook_delivery_jobs
           WHERE subscription_id = b.subscription_id AND finished_at > b.since AND finished_at <= b.until) AS j
), endpoint AS MATERIALIZED (
    SELECT subscription_id, max(finished_at) FILTER (WHERE status = 'Completed') AS succeeded_at,
           array_agg(finished_at) FILTER (WHERE status = 'Failed') AS failed_at,
           array_agg(leased_at) FILTER (WHERE status = 'Failed') AS leased_at,
           max(finished_at) FILTER (WHERE status = 'Failed') AS last_failure_at,
           (array_agg(error_code ORDER BY finished_at DESC) FILTER (WHERE status = 'Failed'))[1] AS last_error_code
      FROM attempt
     WHERE status = 'Completed' OR error_code <> ALL (%(uncounted)s::text[])
     GROUP BY subscription_id
), held AS MATERIALIZED (
    SELECT h.subscription_id, h.watched_since, e.succeeded_at, e.failed_at, e.leased_at, e.last_failure_at,
           e.last_error_code
      FROM endpoint e JOIN subscription_health h ON h.subscription_id = e.subscription_id
     ORDER BY h.subscription_id FOR NO KEY UPDATE OF h SKIP LOCKED
), counted AS (
    UPDATE subscription_health h
       SET consecutive_failures = run.failures
               + CASE WHEN held.succeeded_at IS NULL THEN h.consecutive_failures ELSE 0 END,
           first_failure_at = coalesce(CASE WHEN held.succeeded_at IS NULL THEN h.first_failure_at END, run.begun_at),
           warned_at_50 = CASE WHEN held.succeeded_at IS NULL THEN h.warned_at_50 END,
           warned_at_90 = CASE WHEN held.succeeded_at IS NULL THEN h.warned_at_90 END,
           last_success_at = coalesce(held.succeeded_at, h.last_success_at),
           last_failure_at = coalesce(held.last_failure_at, h.last_failure_at),
           last_error_code = coalesce(held.last_error_code, h.last_error_code)
      FROM held CROSS JOIN LATERAL (
          SELECT count(*) AS failures, min(failed.finished_at) AS begun_at
            FROM unnest(held.failed_at, held.leased_at) AS failed (finished_at, leased_at)
           WHERE failed.leased_at >= held.watched_since
             AND (held.succeeded_at IS NULL OR failed.finished_at > held.succeeded_at)) AS run
     WHERE h.subscription_id = held.subscription_id
), moved AS (
    UPDATE subscription_health_mark m SET counted_until = slice.until FROM slice WHERE slice.until IS NOT NULL
), left_behind AS MATERIALIZED (
    SELECT e.subscription_id FROM endpoint e
     WHERE e.subscription_id NOT IN (SELECT subscription_id FROM held)
       AND EXISTS (SELECT FROM subscription_health h WHERE h.subscription_id = e.subscription_id)
), fell_behind AS (
    INSERT INTO subscription_health_behind (subscription_id, counted_until)
    SELECT l.subscription_id, mark.counted_until FROM left_behind l CROSS JOIN mark ORDER BY l.subscription_id
    ON CONFLICT (subscription_id) DO NOTHING
), caught_up AS (
    DELETE FROM subscription_health_behind d USING behind b
     WHERE d.subscription_id = b.subscription_id AND b.until = b.goal
       AND b.subscription_id NOT IN (SELECT subscription_id FROM left_behind)
), came_nearer AS (
    UPDATE subscription_health_behind u SET counted_until = b.until FROM behind b
     WHERE u.subscription_id = b.subscription_id AND b.until < b.goal
       AND b.subscription_id NOT IN (SELECT subscription_id FROM left_behind)
)
SELECT greatest((SELECT count(*) FROM attempt), (SELECT size FROM slice)) AS attempts;

-- name: lock_gone
-- Subscriptions whose receiver answered 410, locked for disabling. Answers of an older address, or from before the
-- subscription was enabled again, are ignored.
WITH gone AS MATERIALIZED (
    SELECT j.subscription_id, max(j.leased_at) AS leased_at, min(j.finished_at) AS first_at, max(j.finished_at) AS last_at
      FROM webhook_delivery_jobs j
      JOIN subscription_health h ON h.subscription_id = j.subscription_id AND j.leased_at >= h.watched_since
     WHERE j.error_code = 'http_410' AND j.finished_at > now() - make_interval(secs => %(lookback_seconds)s)
     GROUP BY j.subscription_id
)
SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.watched_since, greatest(h.consecutive_failures, 1) AS failures,
       coalesce(h.first_failure_at, gone.first_at) AS first_failure_at, gone.last_at AS last_failure_at,
       'http_410' AS last_error_code, h.warned_at_50, h.warned_at_90, now() AS now
  FROM gone
  JOIN subscriptions s ON s.id = gone.subscription_id
  JOIN subscription_health h ON h.subscription_id = s.id
 WHERE s.active AND s.verified AND s.deleted_at IS NULL AND gone.leased_at >= h.watched_since
 ORDER BY s.id LIMIT %(limit)s
   FOR NO KEY UPDATE OF s, h SKIP LOCKED;

-- name: lock_failing
-- Subscriptions for which the next step is due and whose attempts are all counted: a warning, a second one, or
-- disabling. The caller decides which.
WITH failing AS MATERIALIZED (
    SELECT subscription_id, first_failure_at FROM subscription_health
     WHERE first_failure_at IS NOT NULL AND disabled_at IS NULL
       AND first_failure_at <= now() - make_interval(secs => %(warn_seconds)s)
       AND last_failure_at > now() - make_interval(secs => %(fresh_seconds)s)
       AND consecutive_failures >= %(min_failures)s
       AND first_failure_at <= now() - make_interval(secs => CASE
               WHEN warned_at_90 IS NOT NULL THEN %(disable_seconds)s
               WHEN warned_at_50 IS NOT NULL THEN %(warn_again_seconds)s
               ELSE %(warn_seconds)s END)
)
SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.watched_since, h.consecutive_failures AS failures,
       h.first_failure_at, h.last_failure_at, h.last_error_code, h.warned_at_50, h.warned_at_90, now() AS now
  FROM failing
  JOIN subscriptions s ON s.id = failing.subscription_id
  JOIN subscription_health h ON h.subscription_id = s.id
 WHERE s.active AND s.verified AND s.deleted_at IS NULL
   AND h.disabled_at IS NULL AND h.first_failure_at = failing.first_failure_at
   AND NOT EXISTS (SELECT FROM subscription_health_behind b WHERE b.subscription_id = s.id)
 ORDER BY s.id LIMIT %(limit)s
   FOR NO KEY UPDATE OF s, h SKIP LOCKED;

-- name: note_verdicts
-- For locked subscriptions: notes a warning, or disables the subscription and records the reason in its health.
WITH verdict AS MATERIALIZED (
    SELECT * FROM unnest(%(subscription_ids)s::bigint[], %(percents)s::int[], %(reasons)s::text[],
                         %(first_failures)s::timestamptz[])
        AS t (subscription_id, percent, reason, first_failure_at)
), stopped AS (
    UPDATE subscriptions s SET active = false
      FROM verdict v WHERE s.id = v.subscription_id AND v.reason IS NOT NULL
)
UPDATE subscription_health h
   SET warned_at_50 = CASE WHEN v.percent >= 50 THEN coalesce(h.warned_at_50, now()) ELSE h.warned_at_50 END,
       warned_at_90 = CASE WHEN v.percent >= 90 THEN coalesce(h.warned_at_90, now()) ELSE h.warned_at_90 END,
       disabled_at = CASE WHEN v.reason IS NOT NULL THEN now() END,
       disabled_reason = v.reason,
       disabled_failing_since = CASE WHEN v.reason IS NOT NULL THEN v.first_failure_at END,
       told_failing_since = coalesce(h.told_failing_since, v.first_failure_at)
  FROM verdict v WHERE h.subscription_id = v.subscription_id
RETURNING h.subscription_id AS id;
