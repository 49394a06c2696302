-- Ends the sessions for good. A row outlives its session by a day: expiry is checked by the clock of whoever serves the
-- page, and that may be behind. It goes only when that clock and the database's agree that it is over: after a moment
-- in which one of them was far ahead, a session that was signed out would be valid again.
CREATE OR REPLACE FUNCTION end_sessions(session_hashes bytea[], valid_until timestamptz, callers_now timestamptz)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH forgotten AS (
        DELETE FROM ended_sessions WHERE expires_at <= least(now(), callers_now) - interval '1 day'
    )
    INSERT INTO ended_sessions (session_sha256, expires_at)
    SELECT DISTINCT one, valid_until FROM unnest(session_hashes) AS one
    ON CONFLICT (session_sha256) DO NOTHING
$$;
