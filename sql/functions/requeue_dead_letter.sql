-- Starts a new saga for each dead letter, with its event and subscription. SECURITY DEFINER: operators have no other
-- way to insert sagas. Returns one row per existing id; if saga_id is null, reason says why. The insert and the
-- result are two statements, so that the result includes a saga that a concurrent call created.
CREATE OR REPLACE FUNCTION requeue_dead_letter(dead_letter_ids bigint[])
RETURNS TABLE (dead_letter_id bigint, saga_id bigint, created boolean, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bigint[];
BEGIN
    made := start_sagas_again(
        ARRAY(SELECT d.saga_id FROM dead_letters d WHERE d.id = ANY (dead_letter_ids)), once => true);
    RETURN QUERY
        SELECT d.id, s.id, coalesce(s.id = ANY (made), false),
               CASE WHEN s.id IS NOT NULL THEN NULL
                    WHEN e.erasure_id IS NOT NULL THEN 'event_erased'
                    WHEN e.removed_at IS NOT NULL THEN 'payload_removed'
                    ELSE 'subscription_inactive' END
          FROM dead_letters d
          JOIN events e ON e.id = d.event_id
          LEFT JOIN webhook_delivery_sagas s ON s.requeued_from = d.id
         WHERE d.id = ANY (dead_letter_ids)
         ORDER BY d.id;
END
$$;
