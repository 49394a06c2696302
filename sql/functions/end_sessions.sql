-- Ends sessions. A row stays for a day after its session expires, by both the caller's clock and the database's: the
-- server that checks the expiry may have a clock that is behind, and after a jump of one clock an ended session would
-- be valid again.
CREATE OR REPLACE FUNCTION end_sessions(session_hashes bytea[], valid_until timestamptz, callers_now timestamptz)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    WITH late AS MATERIALIZED (
        SELECT session_sha256 FROM ended_sessions
         WHERE expires_at <= least(now(), callers_now) - interval '1 day' FOR UPDATE SKIP LOCKED
    ), forgotten AS (
        DELETE FROM ended_sessions e USING late WHERE e.session_sha256 = late.session_sha256
    )
    INSERT INTO ended_sessions (session_sha256, expires_at)
    SELECT DISTINCT one, valid_until FROM unnest(session_hashes) AS one
    ON CONFLICT (session_sha256) DO NOTHING
$$;
