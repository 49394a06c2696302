-- Checks that a dead letter matches its saga and event, and that the saga is DeadLettered.
CREATE OR REPLACE FUNCTION refuse_untrue_dead_letters() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    untrue bigint;
BEGIN
    SELECT n.saga_id INTO untrue
      FROM new_dead_letters n
      JOIN webhook_delivery_sagas s ON s.id = n.saga_id
      JOIN events e ON e.id = s.event_id
     WHERE s.status <> 'DeadLettered' OR s.event_id <> n.event_id OR s.subscription_id <> n.subscription_id
        OR e.tenant_id <> n.tenant_id OR e.event_type <> n.event_type
        OR e.payload::text IS DISTINCT FROM n.payload_snapshot::text
     LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'dead letter of saga % does not tell what happened', untrue USING ERRCODE = 'HS001';
    END IF;
    RETURN NULL;
END
$$;
