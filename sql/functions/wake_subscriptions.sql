-- Has the orchestrator look at subscriptions that have new sagas, each no later than its first is due. A flow row that
-- another session has locked is skipped: the search for waiting sagas finds it. The row is written even if wake_at is
-- early enough: an orchestrator that cannot see the new sagas yet must not clear it. Runs with the rights of its
-- callers, which are SECURITY DEFINER functions.
CREATE OR REPLACE FUNCTION wake_subscriptions(ids bigint[], due timestamptz[]) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, public AS $$
    WITH wanted AS MATERIALIZED (
        SELECT u.id, min(u.due) AS due FROM unnest(ids, due) AS u (id, due) GROUP BY u.id
    ), f AS MATERIALIZED (
        SELECT f.subscription_id, w.due
          FROM wanted w JOIN subscription_flow f ON f.subscription_id = w.id
         ORDER BY f.subscription_id FOR NO KEY UPDATE OF f SKIP LOCKED
    )
    UPDATE subscription_flow s
       SET version = s.version + 1, wake_at = least(s.wake_at, f.due)
      FROM f WHERE s.subscription_id = f.subscription_id
$$;
