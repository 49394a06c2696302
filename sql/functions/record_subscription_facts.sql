-- Writes the history of a subscription, with the ids of the events that wait for routing (at most 500).
CREATE OR REPLACE FUNCTION record_subscription_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    waiting bigint[] := '{}';
BEGIN
    IF NEW.eligible_after_event IS NOT NULL THEN
        waiting := ARRAY(SELECT event_id FROM routing_outbox ORDER BY event_id LIMIT 501);
    END IF;
    INSERT INTO subscription_history (subscription_id, tenant_id, event_types, filter, filter_path, active, verified,
                                      eligible_since, eligible_after_event, eligible_snapshot, deleted_at,
                                      waiting_events)
    VALUES (NEW.id, NEW.tenant_id, NEW.event_types, NEW.filter, NEW.filter_path, NEW.active, NEW.verified,
            NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot, NEW.deleted_at,
            CASE WHEN cardinality(waiting) <= 500 THEN waiting END);
    RETURN NULL;
END
$$;
