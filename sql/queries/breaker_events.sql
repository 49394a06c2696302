-- name: lock_breaker_changes
-- Circuit breakers that have opened or closed since the last look, with the health rows locked in which that is noted.
-- told_at: the opening that was told and has ended; opened_at: the one to tell. Both, if a breaker has closed and opened
-- again. An opening is not told for an inactive subscription, nor for one to operational events: a failing subscriber
-- would cause an endless loop. A told opening that has ended is always told.
-- The columns *_is_heard say whether the tenant has a subscriber to that event. closed_at: the first success since the
-- opening, or now, if something else has closed the breaker. last_error_code: among the last 100 failed attempts.
WITH changed AS MATERIALIZED (
    SELECT coalesce(opened.subscription_id, told.subscription_id) AS id
      FROM (SELECT subscription_id, breaker_opened_at FROM subscription_flow
             WHERE breaker_opened_at IS NOT NULL) AS opened
      FULL JOIN (SELECT subscription_id, breaker_told_at FROM subscription_health
                  WHERE breaker_told_at IS NOT NULL) AS told ON told.subscription_id = opened.subscription_id
     WHERE opened.breaker_opened_at IS DISTINCT FROM told.breaker_told_at
), held AS MATERIALIZED (
    SELECT s.id, s.tenant_id, s.event_types, s.callback_url, h.breaker_told_at AS told_at, f.failures_in_a_row,
           CASE WHEN may.be_told THEN f.breaker_opened_at END AS opened_at
      FROM changed
      JOIN subscriptions s ON s.id = changed.id
      JOIN subscription_flow f ON f.subscription_id = s.id
      JOIN subscription_health h ON h.subscription_id = s.id
     CROSS JOIN LATERAL (
          SELECT s.active AND s.verified AND s.deleted_at IS NULL
                     AND NOT EXISTS (SELECT FROM unnest(s.event_types) AS pattern WHERE pattern LIKE 'hooksaga.%%')
                     AS be_told) AS may
     WHERE h.breaker_told_at IS DISTINCT FROM f.breaker_opened_at
       AND (h.breaker_told_at IS NOT NULL OR may.be_told)
     ORDER BY s.id LIMIT %(limit)s FOR NO KEY UPDATE OF h SKIP LOCKED
)
SELECT held.id, held.tenant_id, held.event_types, held.callback_url, held.told_at, held.opened_at,
       held.failures_in_a_row AS failures,
       CASE WHEN held.told_at IS NOT NULL THEN coalesce(
           (SELECT j.finished_at FROM webhook_delivery_jobs j
             WHERE j.subscription_id = held.id AND j.finished_at > held.told_at AND j.status = 'Completed'
             ORDER BY j.finished_at LIMIT 1), now()) END AS closed_at,
       (SELECT last.error_code
          FROM (SELECT j.error_code, j.finished_at, j.id FROM webhook_delivery_jobs j
                 WHERE j.subscription_id = held.id AND j.status = 'Failed'
                 ORDER BY j.finished_at DESC, j.id DESC LIMIT 100) AS last
         WHERE last.error_code <> ALL (%(uncounted)s::text[])
         ORDER BY last.finished_at DESC, last.id DESC LIMIT 1) AS last_error_code,
       EXISTS (SELECT FROM subscription_patterns w
                WHERE w.tenant_id = held.tenant_id
                  AND w.pattern = ANY (patterns_of_type(%(opened_type)s::varchar))) AS opening_is_heard,
       EXISTS (SELECT FROM subscription_patterns w
                WHERE w.tenant_id = held.tenant_id
                  AND w.pattern = ANY (patterns_of_type(%(closed_type)s::varchar))) AS closing_is_heard
  FROM held
 ORDER BY held.id;

-- name: note_told
-- For locked health rows: the opening that is told now, null where the last one has ended.
UPDATE subscription_health h SET breaker_told_at = t.told_at
  FROM unnest(%(subscription_ids)s::bigint[], %(told_at)s::timestamptz[]) AS t (subscription_id, told_at)
 WHERE h.subscription_id = t.subscription_id
RETURNING h.subscription_id AS id;
