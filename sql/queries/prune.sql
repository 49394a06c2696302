-- name: prune_deliveries
SELECT sagas, jobs, events, before, last_at, last_id
  FROM prune_finished(%(older_than)s::interval, %(limit)s::integer, %(after_at)s::timestamptz, %(after_id)s::bigint,
                      %(dry_run)s::boolean);

-- name: prune_dead_letters
SELECT dead_letters, sagas, jobs, events, before, last_at, last_id
  FROM prune_dead_letters(%(older_than)s::interval, %(limit)s::integer, %(after_at)s::timestamptz,
                          %(after_id)s::bigint, %(dry_run)s::boolean);

-- name: prune_payloads
SELECT payloads, before, last_at, last_id
  FROM remove_payloads(%(older_than)s::interval, %(limit)s::integer, %(after_at)s::timestamptz, %(after_id)s::bigint,
                       %(dry_run)s::boolean);

-- name: prune_events
SELECT events, before, last_at, last_id
  FROM prune_events(%(older_than)s::interval, %(limit)s::integer, %(after_at)s::timestamptz, %(after_id)s::bigint,
                    %(dry_run)s::boolean);

-- name: plan_retention
SELECT plan_retention(%(deliveries)s::interval, %(dead_letters)s::interval, %(payloads)s::interval,
                      %(events)s::interval) IS NULL AS is_planned;

-- name: retention_lag
SELECT kind, keep_seconds, looked_at, behind_seconds FROM retention_lag ORDER BY kind;
