-- Keys of the HTTP API. Only the hash is kept, and no role reads the table: the functions below are the
-- only way in.
CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name varchar(100) NOT NULL,
    key_sha256 bytea NOT NULL UNIQUE,
    last_four varchar(4) NOT NULL,
    tenant_id varchar(100),
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    CONSTRAINT key_is_a_sha256 CHECK (octet_length(key_sha256) = 32),
    CONSTRAINT scopes_are_known CHECK (scopes <@ ARRAY['events:write', 'subscriptions:write', 'admin'])
);

CREATE FUNCTION check_api_key(hash bytea)
RETURNS TABLE (id bigint, tenant_id varchar, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT id, tenant_id, scopes FROM api_keys WHERE key_sha256 = hash AND revoked_at IS NULL
$$;

-- Creating a key that is there already changes nothing: a key given by configuration is put in at each start.
CREATE FUNCTION create_api_key(key_name varchar, hash bytea, last_characters varchar, tenant varchar, key_scopes text[])
RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    INSERT INTO api_keys (name, key_sha256, last_four, tenant_id, scopes)
    VALUES (key_name, hash, last_characters, tenant, key_scopes)
    ON CONFLICT (key_sha256) DO UPDATE SET name = api_keys.name
    RETURNING id
$$;

CREATE FUNCTION list_api_keys()
RETURNS TABLE (id bigint, name varchar, last_four varchar, tenant_id varchar, scopes text[],
               created_at timestamptz, revoked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT id, name, last_four, tenant_id, scopes, created_at, revoked_at FROM api_keys ORDER BY id DESC
$$;

CREATE FUNCTION revoke_api_key(key_id bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = key_id RETURNING true
$$;
