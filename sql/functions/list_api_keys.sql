-- Lists all keys, newest first, without their hashes.
CREATE OR REPLACE FUNCTION list_api_keys()
RETURNS TABLE (id bigint, name varchar, last_four varchar, tenant_id varchar, scopes text[],
               created_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT id, name, last_four, tenant_id, scopes, created_at, revoked_at FROM api_keys ORDER BY id DESC
$$;
