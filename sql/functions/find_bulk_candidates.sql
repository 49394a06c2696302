-- Returns the next dead letters, events or, for a resend, last attempts of one lane, in order. origin_id: the saga that
-- is sent again. Events without payload are skipped. The filter has the same meaning as in count_bulk_lanes. Of attempts that
-- finish at the same time as `after_at`, only those with a greater id follow. A backfill finds the events that the present
-- filter of the subscription matches.
CREATE OR REPLACE FUNCTION find_bulk_candidates(
    op bulk_operations, lane_subscription bigint, after_at timestamptz, after_id bigint, most integer
)
RETURNS TABLE (id bigint, event_id bigint, origin_id bigint, dead_letter_id bigint, accepted_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    wanted jsonb := op.filter;
    path jsonpath;
    since timestamptz;
    patterns varchar[];
BEGIN
    IF op.kind = 'requeue' THEN
        RETURN QUERY
            SELECT d.id, d.event_id, d.saga_id, d.id, '-infinity'::timestamptz FROM dead_letters d
             WHERE d.subscription_id = lane_subscription AND d.id > after_id AND d.id <= op.until_id
               AND num_nonnulls(d.payload_snapshot) = 1
               AND (op.tenant_id IS NULL OR d.tenant_id = op.tenant_id)
               AND (wanted ->> 'event_type' IS NULL OR d.event_type = wanted ->> 'event_type')
               AND (wanted ->> 'error_code' IS NULL OR d.final_error_code = wanted ->> 'error_code')
               AND (wanted ->> 'error_code' IS NOT NULL
                    OR coalesce(d.final_error_code, '') NOT IN ('canceled', 'discarded'))
               AND (wanted ->> 'failed_after' IS NULL OR d.failed_at >= (wanted ->> 'failed_after')::timestamptz)
               AND (wanted ->> 'failed_before' IS NULL OR d.failed_at < (wanted ->> 'failed_before')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)
             ORDER BY d.id LIMIT most;
    ELSIF op.kind = 'resend' THEN
        RETURN QUERY
            SELECT j.id, g.event_id, g.id,
                   (SELECT d.id FROM dead_letters d
                     WHERE d.saga_id = g.id
                       AND NOT EXISTS (SELECT FROM webhook_delivery_sagas r WHERE r.requeued_from = d.id)),
                   j.finished_at
              FROM webhook_delivery_jobs j
              JOIN webhook_delivery_sagas g ON g.id = j.saga_id
              JOIN events e ON e.id = g.event_id AND e.removed_at IS NULL
             WHERE j.subscription_id = lane_subscription AND j.finished_at IS NOT NULL
               AND j.finished_at >= greatest((wanted ->> 'ended_after')::timestamptz, after_at)
               AND (j.finished_at > after_at OR j.id > after_id)
               AND j.finished_at < coalesce((wanted ->> 'ended_before')::timestamptz, op.created_at)
               AND is_to_resend(g, e.tenant_id, e.event_type, j.id, wanted, op.tenant_id, op.until_id)
             ORDER BY j.finished_at, j.id LIMIT most;
    ELSE
        since := greatest((wanted ->> 'since')::timestamptz, retention_horizon(), after_at);
        patterns := ARRAY(SELECT jsonb_array_elements_text(wanted -> 'event_types'));
        path := (SELECT s.filter_path FROM subscriptions s WHERE s.id = lane_subscription);
        IF '*' = ANY (patterns) THEN  -- most events match, so they are read by time
            RETURN QUERY
                SELECT e.id, e.id, NULL::bigint, NULL::bigint, e.created_at FROM events e
                 WHERE e.tenant_id = op.tenant_id AND patterns && patterns_of_type(e.event_type)
                   AND e.test_subscription_id IS NULL AND e.removed_at IS NULL AND e.created_at >= since
                     AND (e.created_at > after_at OR e.id > after_id)
                   AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
                   AND e.id <= op.until_id AND filter_matches(path, compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes)))
                   AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                    WHERE g.event_id = e.id AND g.subscription_id = lane_subscription)
                 ORDER BY e.created_at, e.id LIMIT most;
            RETURN;
        END IF;
        RETURN QUERY
            SELECT e.id, e.id, NULL::bigint, NULL::bigint, e.created_at
              FROM (SELECT types_of_patterns(patterns) AS event_type OFFSET 0) AS of_type
             CROSS JOIN LATERAL (
                  SELECT e.id, e.created_at FROM events e
                   WHERE e.event_type = of_type.event_type AND e.tenant_id = op.tenant_id
                     AND e.test_subscription_id IS NULL AND e.removed_at IS NULL AND e.created_at >= since
                     AND (e.created_at > after_at OR e.id > after_id)
                     AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
                     AND e.id <= op.until_id AND filter_matches(path, compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes)))
                     AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                      WHERE g.event_id = e.id AND g.subscription_id = lane_subscription)
                   ORDER BY e.created_at, e.id LIMIT most) AS e
             ORDER BY e.created_at, e.id LIMIT most;
    END IF;
END
$$;
