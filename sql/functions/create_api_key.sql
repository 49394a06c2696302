-- Returns the id of an existing key unchanged, without waiting for a lock on its row: a key from the configuration is
-- created again at each start.
CREATE OR REPLACE FUNCTION create_api_key(
    key_name varchar, hash bytea, last_characters varchar, tenant varchar, key_scopes text[]
)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    key_id bigint;
BEGIN
    LOOP
        SELECT k.id INTO key_id FROM api_keys k WHERE k.key_sha256 = hash;
        IF FOUND THEN
            RETURN key_id;
        END IF;
        INSERT INTO api_keys (name, key_sha256, last_four, tenant_id, scopes)
        VALUES (key_name, hash, last_characters, tenant, key_scopes)
        ON CONFLICT (key_sha256) DO NOTHING
        RETURNING id INTO key_id;
        IF FOUND THEN
            RETURN key_id;
        END IF;
    END LOOP;
END
$$;
