-- A trigger writes the outbox, so that events inserted in a producer's own transaction are routed too, and the ingest
-- role needs no right on the outbox.
CREATE OR REPLACE FUNCTION put_new_events_in_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO routing_outbox (event_id, created_at, ordering_key)
        SELECT id, created_at, ordering_key FROM new_events;
    RETURN NULL;
END
$$;
