-- Returns the next dead letters or events of one lane, in order. The filter has the same meaning as in
-- count_bulk_lanes.
CREATE OR REPLACE FUNCTION find_bulk_candidates(
    op bulk_operations, lane_subscription bigint, after_at timestamptz, after_id bigint, most integer
)
RETURNS TABLE (id bigint, event_id bigint, dead_letter_id bigint, accepted_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    wanted jsonb := op.filter;
    since timestamptz;
BEGIN
    IF op.kind = 'requeue' THEN
        RETURN QUERY
            SELECT d.id, d.event_id, d.id, '-infinity'::timestamptz FROM dead_letters d
             WHERE d.subscription_id = lane_subscription AND d.id > after_id AND d.id <= op.until_id
               AND (op.tenant_id IS NULL OR d.tenant_id = op.tenant_id)
               AND (wanted ->> 'event_type' IS NULL OR d.event_type = wanted ->> 'event_type')
               AND (wanted ->> 'error_code' IS NULL OR d.final_error_code = wanted ->> 'error_code')
               AND (wanted ->> 'error_code' IS NOT NULL
                    OR coalesce(d.final_error_code, '') NOT IN ('canceled', 'discarded'))
               AND (wanted ->> 'failed_after' IS NULL OR d.failed_at >= (wanted ->> 'failed_after')::timestamptz)
               AND (wanted ->> 'failed_before' IS NULL OR d.failed_at < (wanted ->> 'failed_before')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)
             ORDER BY d.id LIMIT most;
    ELSE
        since := greatest((wanted ->> 'since')::timestamptz, retention_horizon(), after_at);
        RETURN QUERY
            SELECT e.id, e.id, NULL::bigint, e.created_at FROM events e
             WHERE e.event_type = wanted ->> 'event_type' AND e.tenant_id = op.tenant_id
               AND e.created_at >= since AND (e.created_at > after_at OR e.id > after_id)
               AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
               AND e.id <= op.until_id
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                WHERE g.event_id = e.id AND g.subscription_id = lane_subscription)
             ORDER BY e.created_at, e.id LIMIT most;
    END IF;
END
$$;
