-- Whether a session was signed out early.
CREATE OR REPLACE FUNCTION session_has_ended(session_hash bytea) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT EXISTS (SELECT FROM ended_sessions WHERE session_sha256 = session_hash)
$$;
