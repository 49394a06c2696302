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

-- Sessions of the console and the portal that were signed out before their time. A session is a sealed cookie, which
-- no server can take back from who has kept it; so what has ended is written down until it would have ended anyway.
CREATE TABLE ended_sessions (
    session_sha256 bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL,
    CONSTRAINT session_is_a_sha256 CHECK (octet_length(session_sha256) = 32)
);

-- Ends the sessions for good. A row outlives its session by a day: expiry is checked by the clock of whoever serves the
-- page, and that may be behind. It goes only when that clock and the database's agree that it is over: after a moment in
-- which one of them was far ahead, a session that was signed out would be valid again.
CREATE FUNCTION end_sessions(session_hashes bytea[], valid_until timestamptz, callers_now timestamptz) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH forgotten AS (
        DELETE FROM ended_sessions WHERE expires_at <= least(now(), callers_now) - interval '1 day'
    )
    INSERT INTO ended_sessions (session_sha256, expires_at)
    SELECT DISTINCT one, valid_until FROM unnest(session_hashes) AS one
    ON CONFLICT (session_sha256) DO NOTHING
$$;

CREATE FUNCTION session_has_ended(session_hash bytea) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT EXISTS (SELECT FROM ended_sessions WHERE session_sha256 = session_hash)
$$;

GRANT EXECUTE ON FUNCTION create_console_sign_in, use_console_sign_in, end_sessions, session_has_ended
    TO dead_letter_operator;
