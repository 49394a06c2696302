-- The snapshot can be too wide for the routing index, so it is looked up separately, for the few events whose ids do
-- not decide. A function at the lowest cost: with a subquery the planner does not use the index.
CREATE OR REPLACE FUNCTION eligible_snapshot_of(subscription_id bigint) RETURNS pg_snapshot
LANGUAGE sql STABLE PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT s.eligible_snapshot FROM subscriptions s WHERE s.id = subscription_id;
END;
