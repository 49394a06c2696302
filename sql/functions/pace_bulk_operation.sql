-- Changes the rate of an operation's remaining sagas.
CREATE OR REPLACE FUNCTION pace_bulk_operation(wanted_id bigint, tenant varchar, rate double precision) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE bulk_operations SET rate_per_second = rate, updated_at = clock_timestamp()
     WHERE id = wanted_id AND (tenant IS NULL OR tenant_id = tenant) AND status IN ('Running', 'Paused')
       AND rate IS NOT NULL
$$;
