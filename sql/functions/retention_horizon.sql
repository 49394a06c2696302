-- From this time on all events are complete. Events accepted before it, their payloads or their sagas may have been
-- deleted, so it is unknown who received them, and a backfill skips them. Null while nothing was deleted. The caller's
-- lock keeps the answer true until its transaction ends: retention moves the horizon in the transaction that deletes.
CREATE OR REPLACE FUNCTION retention_horizon() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    moment timestamptz;
BEGIN
    SELECT greatest(r.horizon, r.event_horizon, r.payload_horizon) INTO moment FROM retention_state r FOR SHARE;
    RETURN moment;
END
$$;
