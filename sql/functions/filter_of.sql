-- The compiled filter of a subscription, which can be too wide for the routing index, and is looked up only where the index
-- says that there is one. A function at the lowest cost, as eligible_snapshot_of.
CREATE OR REPLACE FUNCTION filter_of(subscription_id bigint) RETURNS jsonpath
LANGUAGE sql STABLE PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT s.filter_path FROM subscriptions s WHERE s.id = subscription_id;
END;
