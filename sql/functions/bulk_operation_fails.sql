-- Whether nearly all deliveries of a bulk operation fail: at least 10, and 90 % of those that were tried. Failed are
-- dead letters and sagas that wait for a retry; tried are those and the Completed ones. An operation that has started
-- more than 10,000 is not looked at: counting would cost more with each step, and a circuit breaker protects an endpoint
-- that fails later. Counts at most 10,000 entries of one index.
CREATE OR REPLACE FUNCTION bulk_operation_fails(op bulk_operations) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
    SELECT op.done <= 10000 AND failing >= 10 AND failing >= 0.9 * (op.done - untried)
      FROM (SELECT count(*) FILTER (WHERE g.status IN ('PendingRetry', 'DeadLettered')) AS failing,
                   count(*) FILTER (WHERE g.status IN ('Pending', 'InProgress')) AS untried
              FROM webhook_delivery_sagas g
             WHERE g.bulk_operation_id = op.id
               AND g.status IN ('Pending', 'InProgress', 'PendingRetry', 'DeadLettered')) AS counted
$$;
