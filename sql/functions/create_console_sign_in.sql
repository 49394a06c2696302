-- Creates a sign-in link for a key, and deletes expired ones that no other session has locked. False: the key does not
-- exist or is revoked.
CREATE OR REPLACE FUNCTION create_console_sign_in(token_hash bytea, key_hash bytea, valid_seconds integer)
RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH late AS MATERIALIZED (
        SELECT token_sha256 FROM console_sign_ins WHERE expires_at <= now() FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM console_sign_ins s USING late WHERE s.token_sha256 = late.token_sha256
    ), made AS (
        INSERT INTO console_sign_ins (token_sha256, key_id, expires_at)
        SELECT token_hash, k.id, now() + make_interval(secs => valid_seconds)
          FROM api_keys k WHERE k.key_sha256 = key_hash AND k.revoked_at IS NULL
        RETURNING true
    )
    SELECT EXISTS (SELECT FROM made)
$$;
