-- The snapshot can be too wide for the index of routing, so it is looked up by itself, for the few events that are not
-- later by their ids. A function at the lowest cost, because a subquery in its place makes the planner leave the index.
CREATE OR REPLACE FUNCTION eligible_snapshot_of(subscription_id bigint) RETURNS pg_snapshot
LANGUAGE sql STABLE PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT s.eligible_snapshot FROM subscriptions s WHERE s.id = subscription_id;
END;
