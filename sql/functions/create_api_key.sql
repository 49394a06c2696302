-- Returns the id of an existing key unchanged: a key from the configuration is created again at each start.
CREATE OR REPLACE FUNCTION create_api_key(
    key_name varchar, hash bytea, last_characters varchar, tenant varchar, key_scopes text[]
)
RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    INSERT INTO api_keys (name, key_sha256, last_four, tenant_id, scopes)
    VALUES (key_name, hash, last_characters, tenant, key_scopes)
    ON CONFLICT (key_sha256) DO UPDATE SET name = api_keys.name
    RETURNING id
$$;
