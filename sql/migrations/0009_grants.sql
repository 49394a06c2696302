-- Objects x roles. What is not named here is denied; the matrix is in sql/README.md.
GRANT USAGE ON SCHEMA public TO event_ingest_writer, event_producer, router_worker, saga_orchestrator, job_worker,
    lease_cleaner, subscription_admin, dead_letter_operator, retention_operator;

-- event_ingest_writer: adds events, reads events and subscriptions (never their headers).
GRANT INSERT (webhook_id, tenant_id, event_type, source, external_id, payload) ON events TO event_ingest_writer;
GRANT SELECT ON events TO event_ingest_writer;
GRANT SELECT (id, tenant_id, event_type, active, verified, eligible_since, deleted_at)
    ON subscriptions TO event_ingest_writer;

-- event_producer: adds events, for any tenant, and reads nothing: not even the events that it has added. An event has
-- the time of its own transaction.
GRANT INSERT (webhook_id, tenant_id, event_type, source, external_id, payload) ON events TO event_producer;

-- router_worker: sees everything of an event but its payload, and may only start sagas.
GRANT SELECT (id, webhook_id, tenant_id, event_type, created_at, accepted_by) ON events TO router_worker;
GRANT SELECT (id, tenant_id, event_type, active, verified, eligible_after_event, eligible_snapshot, deleted_at)
    ON subscriptions TO router_worker;
GRANT EXECUTE ON FUNCTION eligible_snapshot_of(bigint) TO router_worker;
GRANT EXECUTE ON FUNCTION accepted_after(bigint, xid8, bigint, pg_snapshot) TO router_worker, dead_letter_operator;
GRANT SELECT, UPDATE, DELETE ON routing_outbox TO router_worker;
GRANT INSERT (event_id, subscription_id) ON webhook_delivery_sagas TO router_worker;
GRANT SELECT (id, event_id, subscription_id, requeued_from) ON webhook_delivery_sagas TO router_worker;

-- saga_orchestrator: the only one that moves sagas; makes jobs and dead letters.
GRANT SELECT ON events, webhook_delivery_sagas, webhook_delivery_jobs, dead_letters TO saga_orchestrator;
GRANT SELECT (id, tenant_id, event_type, callback_url, pending_callback_url, description, active, verified,
              eligible_since, eligible_after_event, eligible_snapshot, max_retry_limit, base_delay_seconds,
              timeout_seconds, created_at, updated_at, deleted_at)
    ON subscriptions TO saga_orchestrator, dead_letter_operator;  -- all but headers
GRANT UPDATE (status, attempt_count, next_attempt_at, final_error_code, updated_at)
    ON webhook_delivery_sagas TO saga_orchestrator;
GRANT INSERT (saga_id, subscription_id, attempt_number, attempt_at) ON webhook_delivery_jobs TO saga_orchestrator;
GRANT UPDATE (dispatched_at, applied_at) ON webhook_delivery_jobs TO saga_orchestrator;
GRANT INSERT (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, reason, failed_at,
              payload_snapshot)
    ON dead_letters TO saga_orchestrator;

-- job_worker: claims jobs and writes their results, nothing else. It opens what is sealed: secrets, and values of headers.
GRANT SELECT ON webhook_delivery_jobs, webhook_delivery_sagas, events, subscriptions, subscription_secrets
    TO job_worker;
GRANT UPDATE (status, lease_until, worker_id, claim_count, leased_at, finished_at, duration_ms, response_status,
              error_code, response_body, response_truncated, retry_after_seconds, resolved_ip, reconnected)
    ON webhook_delivery_jobs TO job_worker;

-- lease_cleaner: gives back what dead workers held.
GRANT SELECT ON webhook_delivery_jobs TO lease_cleaner;
GRANT UPDATE (status, lease_until, error_code, dispatched_at, lost_leases) ON webhook_delivery_jobs TO lease_cleaner;

-- subscription_admin: configuration and its secrets, headers among them.
GRANT SELECT, INSERT, UPDATE ON subscriptions TO subscription_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_secrets TO subscription_admin;

-- dead_letter_operator: reads all but secrets and headers (of subscriptions: see above), changes nothing, requeues
-- through one function. Of secrets it reads the ids, which the audit compares with their sequence.
GRANT SELECT ON events, routing_outbox, webhook_delivery_sagas, webhook_delivery_jobs, dead_letters
    TO dead_letter_operator;
GRANT SELECT (id) ON subscription_secrets TO dead_letter_operator;
GRANT EXECUTE ON FUNCTION requeue_dead_letter(bigint[]) TO dead_letter_operator;

-- The audit says how many ids are left. To take one is the right to insert, which is granted with the tables.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO dead_letter_operator;

-- retention_operator: owner of the retention function only.
GRANT SELECT, DELETE ON webhook_delivery_sagas, webhook_delivery_jobs TO retention_operator;

-- API keys, by function only.
GRANT EXECUTE ON FUNCTION check_api_key(bytea) TO event_ingest_writer, subscription_admin, dead_letter_operator;
GRANT EXECUTE ON FUNCTION create_api_key(varchar, bytea, varchar, varchar, text[]), list_api_keys(),
    revoke_api_key(bigint) TO dead_letter_operator;

-- Helpers of the migration tool and trigger functions stay closed to everybody else.
REVOKE EXECUTE ON FUNCTION requeue_dead_letter(bigint[]), check_api_key(bytea),
    create_api_key(varchar, bytea, varchar, varchar, text[]), list_api_keys(), revoke_api_key(bigint) FROM PUBLIC;
