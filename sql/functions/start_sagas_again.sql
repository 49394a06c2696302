-- Sends ended deliveries again: starts a new saga of the same pair for each, with its origin in resent_from. If the dead
-- letter of the origin was not requeued before, the new saga is also its requeue. once: only sagas with such a dead
-- letter. Returns the new sagas. While a new saga has not ended, its origin starts no other (uniq_saga_resent_open).
-- Holds the retention horizon, so that retention cannot delete the event of a saga that is not visible yet. An event
-- without payload is not sent again.
-- Runs with the rights of its callers, which are SECURITY DEFINER functions.
CREATE OR REPLACE FUNCTION start_sagas_again(origin_ids bigint[], once boolean) RETURNS bigint[]
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    made bigint[];
    of_subscriptions bigint[];
BEGIN
    PERFORM retention_horizon();
    WITH inserted AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, resent_from, requeued_from)
        SELECT o.event_id, o.subscription_id, o.id, d.id
          FROM webhook_delivery_sagas o
          JOIN subscriptions s ON s.id = o.subscription_id AND s.active AND s.verified AND s.deleted_at IS NULL
          JOIN events e ON e.id = o.event_id AND e.removed_at IS NULL
          LEFT JOIN dead_letters d ON d.saga_id = o.id
           AND NOT EXISTS (SELECT FROM webhook_delivery_sagas r WHERE r.requeued_from = d.id)
         WHERE o.id = ANY (origin_ids) AND o.status::text IN ('Completed', 'DeadLettered')
           AND (d.id IS NOT NULL OR NOT once)
         ORDER BY o.id
        ON CONFLICT DO NOTHING
        RETURNING id, subscription_id
    )
    SELECT array_agg(id), array_agg(DISTINCT subscription_id) INTO made, of_subscriptions FROM inserted;
    IF made IS NOT NULL THEN
        PERFORM wake_subscriptions(of_subscriptions, array_fill(now(), ARRAY[cardinality(of_subscriptions)]));
    END IF;
    RETURN coalesce(made, '{}');
END
$$;
