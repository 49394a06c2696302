-- Starts an erasure of one event, of all events that a tenant has now, or of those in which the attribute has one of the
-- values (a JSON array), or returns the one that is running. Returns no row for an event that does not exist. tenant null:
-- the event's. SECURITY DEFINER: operators have no other way.
CREATE OR REPLACE FUNCTION start_erasure(
    of_webhook_id uuid, tenant varchar, attribute varchar, wanted jsonb, why varchar, key_id bigint, caller varchar
)
RETURNS TABLE (id bigint, created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    event_of bigint;
    tenant_of varchar := tenant;
    made bigint;
BEGIN
    IF of_webhook_id IS NOT NULL THEN
        SELECT e.id, e.tenant_id INTO event_of, tenant_of FROM events e
         WHERE e.webhook_id = of_webhook_id AND (tenant IS NULL OR e.tenant_id = tenant);
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    LOOP
        INSERT INTO erasures (tenant_id, event_id, webhook_id, attribute_name, attribute_values, reason, created_by,
                              created_by_key_id, until_id)
        VALUES (tenant_of, event_of, of_webhook_id, attribute, wanted, why,
                coalesce((SELECT k.name FROM api_keys k WHERE k.id = key_id), caller), key_id,
                coalesce(event_of, (SELECT max(e.id) FROM events e), 0))
        ON CONFLICT (tenant_id, coalesce(event_id, 0), coalesce(attribute_name, ''),
                     coalesce(jsonb_hash_extended(attribute_values, 0), 0)) WHERE status = 'Running' DO NOTHING
        RETURNING erasures.id INTO made;
        IF made IS NOT NULL THEN
            RETURN QUERY SELECT made, true;
            RETURN;
        END IF;
        RETURN QUERY
            SELECT r.id, false FROM erasures r
             WHERE r.tenant_id = tenant_of AND coalesce(r.event_id, 0) = coalesce(event_of, 0)
               AND coalesce(r.attribute_name, '') = coalesce(attribute, '')
               AND coalesce(jsonb_hash_extended(r.attribute_values, 0), 0) = coalesce(jsonb_hash_extended(wanted, 0), 0)
               AND r.status = 'Running';
        IF FOUND THEN
            RETURN;
        END IF;  -- it ended between the two statements
    END LOOP;
END
$$;
