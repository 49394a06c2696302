-- Counts the matches of a filter by subscription, for the dry run and for the lanes of a new operation. newest_id
-- null: no upper limit. The plan is made for each filter. A resend counts the last attempts of deliveries, which have
-- the time when a delivery ended. Dead letters with the error code canceled match only if the
-- filter names that code: a requeue of everything else must not undo a cancel.
CREATE OR REPLACE FUNCTION count_bulk_lanes(wanted_kind bulk_kind, tenant varchar, wanted jsonb, newest_id bigint)
RETURNS TABLE (subscription_id bigint, matched bigint)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    IF wanted_kind = 'requeue' THEN
        RETURN QUERY
            SELECT d.subscription_id, count(*) FROM dead_letters d
             WHERE (newest_id IS NULL OR d.id <= newest_id) AND num_nonnulls(d.payload_snapshot) = 1
               AND (tenant IS NULL OR d.tenant_id = tenant)
               AND (wanted ->> 'subscription_id' IS NULL OR d.subscription_id = (wanted ->> 'subscription_id')::bigint)
               AND (wanted ->> 'event_type' IS NULL OR d.event_type = wanted ->> 'event_type')
               AND (wanted ->> 'error_code' IS NULL OR d.final_error_code = wanted ->> 'error_code')
               AND (wanted ->> 'error_code' IS NOT NULL
                    OR coalesce(d.final_error_code, '') NOT IN ('canceled', 'discarded'))
               AND (wanted ->> 'failed_after' IS NULL OR d.failed_at >= (wanted ->> 'failed_after')::timestamptz)
               AND (wanted ->> 'failed_before' IS NULL OR d.failed_at < (wanted ->> 'failed_before')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)
             GROUP BY d.subscription_id;
    ELSIF wanted_kind = 'resend' THEN
        RETURN QUERY
            SELECT j.subscription_id, count(*) FROM webhook_delivery_jobs j
              JOIN webhook_delivery_sagas g ON g.id = j.saga_id
              JOIN events e ON e.id = g.event_id AND e.removed_at IS NULL
             WHERE j.finished_at >= (wanted ->> 'ended_after')::timestamptz
               AND j.finished_at < coalesce((wanted ->> 'ended_before')::timestamptz, now())
               AND (wanted ->> 'subscription_id' IS NULL OR j.subscription_id = (wanted ->> 'subscription_id')::bigint)
               AND is_to_resend(g, e.tenant_id, e.event_type, j.id, wanted, tenant, newest_id)
             GROUP BY j.subscription_id;
    ELSE
        RETURN QUERY
            SELECT s.id, count(*) FROM subscriptions s
              JOIN events e ON e.tenant_id = s.tenant_id AND e.test_subscription_id IS NULL AND e.removed_at IS NULL
               AND e.event_type = ANY (ARRAY(SELECT types_of_patterns(ARRAY(
                       SELECT jsonb_array_elements_text(wanted -> 'event_types'))::varchar[])))
             WHERE s.id = (wanted ->> 'subscription_id')::bigint
               AND (newest_id IS NULL OR e.id <= newest_id)
               AND filter_matches(s.filter_path, compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes)))
               AND e.created_at >= (wanted ->> 'since')::timestamptz
               AND (wanted ->> 'until' IS NULL OR e.created_at < (wanted ->> 'until')::timestamptz)
               AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
                                WHERE g.event_id = e.id AND g.subscription_id = s.id)
             GROUP BY s.id;
    END IF;
END
$$;
