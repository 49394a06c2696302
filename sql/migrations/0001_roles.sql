-- Each function logs in as its own role. Roles belong to the whole cluster, so they
-- may be there already, from another database or from a migration that runs beside this one.
-- Timeouts are set on the roles, not on sessions: behind a connection proxy sessions are shared.
DO $$
DECLARE
    function_role text;
BEGIN
    FOREACH function_role IN ARRAY ARRAY[
        'event_ingest_writer', 'router_worker', 'saga_orchestrator', 'job_worker',
        'lease_cleaner', 'subscription_admin', 'dead_letter_operator'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = function_role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I LOGIN', function_role);
                EXECUTE format('ALTER ROLE %I SET statement_timeout = %L', function_role, '30s');
                EXECUTE format('ALTER ROLE %I SET lock_timeout = %L', function_role, '10s');
                EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', function_role, '30s');
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                RAISE NOTICE 'role % was created beside this migration', function_role;
            END;
        END IF;
    END LOOP;
    -- Nobody logs in as these. retention_operator owns the retention function and is the only one who may delete sagas
    -- and jobs. event_producer is what an application's own role is made a member of to add events in its own
    -- transactions (docs/sending.md).
    FOREACH function_role IN ARRAY ARRAY['retention_operator', 'event_producer'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = function_role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', function_role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                RAISE NOTICE 'role % was created beside this migration', function_role;
            END;
        END IF;
    END LOOP;
END
$$;

-- The pipeline's statements reach every large table through an index and join row by row from there. Their plans
-- are made while tables are still empty and kept by the connections, so what looks cheap then (reading all of a
-- small table) is ruled out, and statistics that are missing or old change nothing.
DO $$
DECLARE
    worker_role text;
BEGIN
    FOREACH worker_role IN ARRAY ARRAY['router_worker', 'saga_orchestrator', 'job_worker', 'lease_cleaner'] LOOP
        EXECUTE format('ALTER ROLE %I SET enable_seqscan = off', worker_role);
        EXECUTE format('ALTER ROLE %I SET enable_hashjoin = off', worker_role);
        EXECUTE format('ALTER ROLE %I SET enable_mergejoin = off', worker_role);
    END LOOP;
    ALTER ROLE event_ingest_writer SET enable_seqscan = off;
END
$$;

-- Nothing is open to everybody; each grant is given by name in a later file.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
