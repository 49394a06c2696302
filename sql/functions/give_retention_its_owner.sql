-- Makes retention_operator the owner of the functions that delete and remove, because the guards let only that role do
-- it. A restore by another owner loses the ownership, so `hooksaga migrate` calls this each time. It also resets
-- work_state, which describes the system that was dumped. An owner without superuser rights temporarily needs the role
-- and CREATE on the schema.
CREATE OR REPLACE FUNCTION give_retention_its_owner() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
DECLARE
    its_own CONSTANT regproc[] := ARRAY['prune_finished', 'prune_dead_letters', 'remove_payloads', 'prune_events',
                                      'step_erasure'];
    one regproc;
    needs_rights boolean := NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
BEGIN
    IF NOT EXISTS (SELECT FROM pg_proc
                    WHERE oid = ANY (its_own::oid[]) AND proowner <> 'retention_operator'::regrole) THEN
        RETURN;
    END IF;
    IF needs_rights THEN
        EXECUTE format('GRANT retention_operator TO %I', current_user)
            || CASE WHEN current_setting('server_version_num')::int >= 160000
               THEN ' WITH INHERIT FALSE, SET TRUE' ELSE '' END;
    END IF;
    GRANT CREATE ON SCHEMA public TO retention_operator;
    FOREACH one IN ARRAY its_own LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO retention_operator', one);
    END LOOP;
    REVOKE CREATE ON SCHEMA public FROM retention_operator;
    IF needs_rights THEN
        EXECUTE format('REVOKE retention_operator FROM %I', current_user);
    END IF;
    UPDATE work_state SET at_work_since = NULL;
END
$$;
