-- Revokes a key. Repeating keeps the first time. Null: no such key.
CREATE OR REPLACE FUNCTION revoke_api_key(key_id bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = key_id RETURNING true
$$;
