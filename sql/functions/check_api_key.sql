-- Returns the key with this hash, unless it is revoked.
CREATE OR REPLACE FUNCTION check_api_key(hash bytea)
RETURNS TABLE (id bigint, tenant_id varchar, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT id, tenant_id, scopes FROM api_keys WHERE key_sha256 = hash AND revoked_at IS NULL
$$;
