-- Pauses, resumes or stops an operation, if the transition is legal. Waits for a step in progress.
CREATE OR REPLACE FUNCTION move_bulk_operation(wanted_id bigint, tenant varchar, wanted bulk_status) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE bulk_operations
       SET status = wanted, updated_at = clock_timestamp(),
           finished_at = CASE WHEN wanted = 'Stopped' THEN clock_timestamp() END
     WHERE id = wanted_id AND (tenant IS NULL OR tenant_id = tenant)
       AND status IN ('Running', 'Paused') AND wanted IN ('Running', 'Paused', 'Stopped') AND status <> wanted
$$;
