-- Starts an operation, or returns the identical one that is still open. Concurrent calls wait for each other at the
-- unique index.
CREATE OR REPLACE FUNCTION start_bulk_operation(
    wanted_kind bulk_kind, tenant varchar, wanted jsonb, rate double precision, why varchar, key_id bigint, caller varchar
)
RETURNS TABLE (id bigint, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bulk_operations;
BEGIN
    LOOP
        INSERT INTO bulk_operations (kind, tenant_id, filter, rate_per_second, reason, created_by, created_by_key_id,
                                     until_id)
        VALUES (wanted_kind, tenant, wanted, rate, why,
                coalesce((SELECT k.name FROM api_keys k WHERE k.id = key_id), caller), key_id,
                coalesce(CASE wanted_kind WHEN 'requeue' THEN (SELECT max(d.id) FROM dead_letters d)
                                          WHEN 'resend' THEN (SELECT max(g.id) FROM webhook_delivery_sagas g)
                                          ELSE (SELECT max(e.id) FROM events e) END, 0))
        ON CONFLICT (kind, coalesce(tenant_id, ''), filter) WHERE status IN ('Running', 'Paused') DO NOTHING
        RETURNING * INTO made;
        EXIT WHEN made.id IS NOT NULL;
        RETURN QUERY
            SELECT o.id, false FROM bulk_operations o
             WHERE o.kind = wanted_kind AND coalesce(o.tenant_id, '') = coalesce(tenant, '') AND o.filter = wanted
               AND o.status IN ('Running', 'Paused');
        IF FOUND THEN
            RETURN;
        END IF;  -- it ended between the two statements
    END LOOP;
    INSERT INTO bulk_operation_lanes (operation_id, subscription_id, matched)
    SELECT made.id, l.subscription_id, l.matched
      FROM count_bulk_lanes(wanted_kind, tenant, wanted, made.until_id) AS l;
    UPDATE bulk_operations o
       SET matched = (SELECT coalesce(sum(l.matched), 0) FROM bulk_operation_lanes l WHERE l.operation_id = made.id)
     WHERE o.id = made.id;
    RETURN QUERY SELECT made.id, true;
END
$$;
