-- Sagas of events accepted before this moment may be gone, so nobody can say any more who got them; a backfill leaves
-- them alone. Null while nothing was deleted. Who asks keeps the answer true until his transaction ends: no horizon
-- moves meanwhile, and as it moves in the transaction that deletes, nothing is deleted that the asker could miss.
CREATE OR REPLACE FUNCTION retention_horizon() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    moment timestamptz;
BEGIN
    SELECT r.horizon INTO moment FROM retention_state r FOR SHARE;
    RETURN moment;
END
$$;
