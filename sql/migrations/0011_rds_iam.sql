-- On RDS a role may log in with a token of IAM once it is a member of rds_iam, which exists nowhere else.
DO $$
DECLARE
    function_role text;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
        FOREACH function_role IN ARRAY ARRAY[
            'event_ingest_writer', 'router_worker', 'saga_orchestrator', 'job_worker',
            'lease_cleaner', 'subscription_admin', 'dead_letter_operator'
        ] LOOP
            EXECUTE format('GRANT rds_iam TO %I', function_role);
        END LOOP;
    END IF;
END
$$;
