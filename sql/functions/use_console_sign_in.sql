-- Returns the hash of the link's key, once: of two concurrent calls one waits for the other's DELETE and finds
-- nothing. Null if the link is used or expired, or its key revoked.
CREATE OR REPLACE FUNCTION use_console_sign_in(token_hash bytea) RETURNS bytea
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    DELETE FROM console_sign_ins s USING api_keys k
     WHERE s.token_sha256 = token_hash AND k.id = s.key_id
    RETURNING CASE WHEN s.expires_at > now() AND k.revoked_at IS NULL THEN k.key_sha256 END
$$;
