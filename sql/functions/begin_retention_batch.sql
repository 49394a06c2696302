-- Begins a batch of retention: checks its limits and locks the row of horizons until the batch ends. Returns the time
-- before which rows are old enough, or null while another batch, or a transaction that starts a delivery of an old event, holds that
-- row: retention never waits for a lock here.
CREATE OR REPLACE FUNCTION begin_retention_batch(older_than interval, max_rows integer) RETURNS timestamptz
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    IF older_than < interval '1 day' OR max_rows NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'retention: at least 1 day old, and 1 to 100000 rows in a batch' USING ERRCODE = 'HS001';
    END IF;
    PERFORM FROM retention_state FOR NO KEY UPDATE SKIP LOCKED;
    RETURN CASE WHEN FOUND THEN now() - older_than END;
END
$$;
