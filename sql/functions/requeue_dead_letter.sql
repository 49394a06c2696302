-- Starts a new saga for each dead letter, with its event and subscription. SECURITY DEFINER: operators have no other
-- way to insert sagas. Returns one row per existing id; if saga_id is null, reason says why. The insert and the
-- result are two statements, so that the result includes a saga that a concurrent call created.
CREATE OR REPLACE FUNCTION requeue_dead_letter(dead_letter_ids bigint[])
RETURNS TABLE (dead_letter_id bigint, saga_id bigint, created boolean, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bigint[];
    of_subscriptions bigint[];
BEGIN
    WITH inserted AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from)
        SELECT d.event_id, d.subscription_id, d.id
          FROM dead_letters d JOIN subscriptions s ON s.id = d.subscription_id
         WHERE d.id = ANY (dead_letter_ids) AND s.active AND s.verified AND s.deleted_at IS NULL
         ORDER BY d.id
        ON CONFLICT (requeued_from) WHERE requeued_from IS NOT NULL DO NOTHING
        RETURNING requeued_from, subscription_id
    )
    SELECT array_agg(requeued_from), array_agg(DISTINCT subscription_id) INTO made, of_subscriptions FROM inserted;
    IF made IS NOT NULL THEN
        PERFORM wake_subscriptions(of_subscriptions, array_fill(now(), ARRAY[cardinality(of_subscriptions)]));
    END IF;
    RETURN QUERY
        SELECT d.id, s.id, d.id = ANY (coalesce(made, '{}')),
               CASE WHEN s.id IS NULL THEN 'subscription_inactive' END
          FROM dead_letters d LEFT JOIN webhook_delivery_sagas s ON s.requeued_from = d.id
         WHERE d.id = ANY (dead_letter_ids)
         ORDER BY d.id;
END
$$;
