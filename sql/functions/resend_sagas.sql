-- Sends ended deliveries again, whatever their result: a new saga for each. SECURITY DEFINER: operators have no other way
-- to insert sagas. Returns one row per existing id; if saga_id is null, reason says why. created is false while an
-- earlier resend of the same saga has not ended: the row names that one.
CREATE OR REPLACE FUNCTION resend_sagas(origin_ids bigint[])
RETURNS TABLE (origin_id bigint, saga_id bigint, created boolean, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bigint[];
BEGIN
    made := start_sagas_again(origin_ids, once => false);
    RETURN QUERY
        SELECT o.id, CASE WHEN takes AND e.removed_at IS NULL THEN again.id END, coalesce(again.id = ANY (made), false),
               CASE WHEN o.status NOT IN ('Completed', 'DeadLettered') THEN 'saga_not_ended'
                    WHEN e.erasure_id IS NOT NULL THEN 'event_erased'
                    WHEN e.removed_at IS NOT NULL THEN 'payload_removed'
                    WHEN NOT takes THEN 'subscription_inactive' END
          FROM webhook_delivery_sagas o
          JOIN events e ON e.id = o.event_id
          JOIN LATERAL (SELECT s.active AND s.verified AND s.deleted_at IS NULL AS takes
                          FROM subscriptions s WHERE s.id = o.subscription_id) AS state ON true
          LEFT JOIN LATERAL (
              SELECT g.id FROM webhook_delivery_sagas g
               WHERE g.event_id = o.event_id AND g.subscription_id = o.subscription_id AND g.resent_from = o.id
               ORDER BY g.id DESC LIMIT 1) AS again ON true
         WHERE o.id = ANY (origin_ids)
         ORDER BY o.id;
END
$$;
