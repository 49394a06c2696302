-- Links that sign one browser in to the console, once. Only the hash of a link's token is kept, no role reads the
-- table, and a link lets nobody in whose key is gone or revoked: the two functions below are the only way in.
CREATE TABLE console_sign_ins (
    token_sha256 bytea PRIMARY KEY,
    key_id bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT token_is_a_sha256 CHECK (octet_length(token_sha256) = 32)
);

-- Makes the link of a key valid, and forgets those that nobody used in time. False: there is no such key (any more).
CREATE FUNCTION create_console_sign_in(token_hash bytea, key_hash bytea, valid_seconds integer) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH forgotten AS (
        DELETE FROM console_sign_ins WHERE expires_at <= now()
    ), made AS (
        INSERT INTO console_sign_ins (token_sha256, key_id, expires_at)
        SELECT token_hash, k.id, now() + make_interval(secs => valid_seconds)
          FROM api_keys k WHERE k.key_sha256 = key_hash AND k.revoked_at IS NULL
        RETURNING true
    )
    SELECT EXISTS (SELECT FROM made)
$$;

-- The hash of the link's key, once: of two who come at the same time one waits for the other's DELETE and finds
-- nothing. Null when it is used, too old, or of a key that was revoked meanwhile.
CREATE FUNCTION use_console_sign_in(token_hash bytea) RETURNS bytea
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    DELETE FROM console_sign_ins s USING api_keys k
     WHERE s.token_sha256 = token_hash AND k.id = s.key_id
    RETURNING CASE WHEN s.expires_at > now() AND k.revoked_at IS NULL THEN k.key_sha256 END
$$;

GRANT EXECUTE ON FUNCTION create_console_sign_in, use_console_sign_in TO dead_letter_operator;
