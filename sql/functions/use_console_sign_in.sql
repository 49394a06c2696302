-- The hash of the link's key, once: of two who come at the same time one waits for the other's DELETE and finds
-- nothing. Null when it is used, too old, or of a key that was revoked meanwhile.
CREATE OR REPLACE FUNCTION use_console_sign_in(token_hash bytea) RETURNS bytea
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    DELETE FROM console_sign_ins s USING api_keys k
     WHERE s.token_sha256 = token_hash AND k.id = s.key_id
    RETURNING CASE WHEN s.expires_at > now() AND k.revoked_at IS NULL THEN k.key_sha256 END
$$;
