-- The eligible subscriptions whose event types match a type, in the order of their ids: those after `after_id`, through
-- `through_id`, at most `most`. For each pattern of the type one range of the routing index; a subscription that several
-- patterns find counts once. A range compares pairs, so that the scan starts at `after_id` and not at the first
-- subscription of the pattern. The planner inlines it.
CREATE OR REPLACE FUNCTION matching_subscriptions(
    of_tenant varchar, of_type varchar, after_id bigint, through_id bigint, most integer
)
RETURNS TABLE (id bigint, since bigint, ordered boolean, filtered boolean)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT DISTINCT ON (m.id) m.id, m.since, m.ordered, m.filtered
      FROM unnest(patterns_of_type(of_type)) AS t (pattern)
     CROSS JOIN LATERAL (
          SELECT p.subscription_id AS id, p.eligible_after_event AS since, p.ordered, p.filtered
            FROM subscription_patterns p
           WHERE p.tenant_id = of_tenant
             AND (p.pattern, p.subscription_id) > (t.pattern, after_id)
             AND (p.pattern, p.subscription_id) <= (t.pattern, through_id)
           ORDER BY p.pattern, p.subscription_id LIMIT most) AS m
     ORDER BY m.id LIMIT most;
END;
