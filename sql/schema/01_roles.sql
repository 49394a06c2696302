-- Each function logs in as its own role. Roles belong to the whole cluster, so another database or a concurrent
-- migration may have created them. Timeouts are set on the roles, not on sessions: a connection proxy shares
-- sessions.
--
-- The pipeline's statements reach each large table through an index. Connections keep plans that were made while
-- tables were empty, so plans that are cheap only then (a sequential scan, a hash or merge join) are disabled;
-- missing or old statistics change nothing (decision 14).
--
-- observer reads the views for dashboards, with limits on time and connections. Nobody logs in as the last two:
-- retention_operator owns the functions of retention and erasure, which retention_worker calls, and alone may delete rows
-- and remove content; an application's own role
-- becomes a member of event_producer to insert events in its own transactions (docs/sending.md).
DO $$
DECLARE
    a_function CONSTANT text[] := ARRAY['statement_timeout=30s', 'lock_timeout=10s',
                                        'idle_in_transaction_session_timeout=30s'];
    row_by_row CONSTANT text[] := ARRAY['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off'];
    wanted record;
    setting text;
BEGIN
    FOR wanted IN SELECT * FROM (VALUES
        ('event_ingest_writer', 'LOGIN', a_function || ARRAY['enable_seqscan=off']),
        ('router_worker', 'LOGIN', a_function || row_by_row),
        ('saga_orchestrator', 'LOGIN', a_function || row_by_row),
        ('job_worker', 'LOGIN', a_function || row_by_row),
        ('lease_cleaner', 'LOGIN', a_function || row_by_row),
        ('endpoint_health_monitor', 'LOGIN', a_function || row_by_row),
        ('subscription_admin', 'LOGIN', a_function),
        ('dead_letter_operator', 'LOGIN', a_function),
        ('retention_worker', 'LOGIN', a_function),
        ('observer', 'LOGIN CONNECTION LIMIT 10',
         ARRAY['default_transaction_read_only=on', 'statement_timeout=10s', 'lock_timeout=2s',
               'idle_in_transaction_session_timeout=10s'] || row_by_row),
        ('retention_operator', 'NOLOGIN', '{}'),
        ('event_producer', 'NOLOGIN', '{}')) AS roles (name, options, settings)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I %s', wanted.name, wanted.options);
                FOREACH setting IN ARRAY wanted.settings LOOP
                    EXECUTE format('ALTER ROLE %I SET %s = %L', wanted.name, split_part(setting, '=', 1),
                                   split_part(setting, '=', 2));
                END LOOP;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                RAISE NOTICE 'role % was created beside this migration', wanted.name;
            END;
        END IF;
    END LOOP;
END
$$;

-- No right is granted to PUBLIC; 15_grants.sql grants each one by name.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
