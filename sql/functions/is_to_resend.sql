-- Whether a bulk operation of kind resend sends this delivery again: it has ended, this job was its last, it matches the
-- filter, and no later saga of its pair exists that is as old as the operation, so that each event is sent once.
CREATE OR REPLACE FUNCTION is_to_resend(
    saga webhook_delivery_sagas, saga_tenant varchar, saga_type varchar, job_id bigint, wanted jsonb, tenant varchar,
    newest_id bigint
)
RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
    SELECT saga.status::text IN ('Completed', 'DeadLettered')
       AND NOT EXISTS (SELECT FROM webhook_delivery_jobs other WHERE other.saga_id = saga.id AND other.id > job_id)
       AND (newest_id IS NULL OR saga.id <= newest_id)
       AND (tenant IS NULL OR saga_tenant = tenant)
       AND (wanted ->> 'event_type' IS NULL OR saga_type = wanted ->> 'event_type')
       AND (wanted ->> 'status' IS NULL OR saga.status::text = wanted ->> 'status')
       AND (wanted ->> 'error_code' IS NULL OR saga.status::text = 'DeadLettered'
                                               AND saga.final_error_code = wanted ->> 'error_code')
       AND (wanted ->> 'error_code' IS NOT NULL OR saga.status::text = 'Completed'
            OR coalesce(saga.final_error_code, '') NOT IN ('canceled', 'discarded'))
       AND NOT EXISTS (SELECT FROM webhook_delivery_sagas later
                        WHERE later.event_id = saga.event_id AND later.subscription_id = saga.subscription_id
                          AND later.id > saga.id AND later.id <= coalesce(newest_id, later.id))
$$;
