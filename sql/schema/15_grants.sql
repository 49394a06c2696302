-- Rights by role. Anything not granted here is denied; sql/README.md has the matrix. Function names are unique, so
-- grants omit their arguments.
GRANT USAGE ON SCHEMA public TO event_ingest_writer, event_producer, router_worker, saga_orchestrator, job_worker,
    lease_cleaner, endpoint_health_monitor, subscription_admin, dead_letter_operator, retention_worker,
    retention_operator, observer;

-- event_ingest_writer: inserts events; reads events and subscriptions, except headers.
GRANT INSERT (webhook_id, tenant_id, event_type, source, external_id, payload, traceparent, ordering_key,
              test_subscription_id, attributes, cloud_event, extracted_attributes)
    ON events TO event_ingest_writer;
GRANT SELECT ON events TO event_ingest_writer;
GRANT SELECT (id, tenant_id, event_types, active, verified, eligible_since, deleted_at)
    ON subscriptions TO event_ingest_writer;
GRANT SELECT ON event_types, event_types_revision TO event_ingest_writer;
GRANT EXECUTE ON FUNCTION check_api_key TO event_ingest_writer;

-- event_producer: inserts events of any tenant, and reads nothing, not even these. created_at is always the time of
-- its transaction.
GRANT INSERT (webhook_id, tenant_id, event_type, source, external_id, payload, traceparent, ordering_key,
              attributes)
    ON events TO event_producer;
GRANT EXECUTE ON FUNCTION attributes_of_event TO router_worker, dead_letter_operator, retention_operator;

-- router_worker: reads events without their payload, and inserts sagas.
GRANT SELECT (id, webhook_id, tenant_id, event_type, created_at, accepted_by, traceparent, ordering_key,
              test_subscription_id, attributes, extracted_attributes)
    ON events TO router_worker;
GRANT SELECT ON subscription_patterns TO router_worker;
GRANT SELECT (id, eligible_snapshot, filter_path) ON subscriptions TO router_worker;
GRANT SELECT (id) ON subscription_history TO router_worker;
GRANT EXECUTE ON FUNCTION patterns_of_type, eligible_snapshot_of, accepted_after, matching_subscriptions, filter_of, filter_matches,
    compared_attributes TO router_worker;
GRANT SELECT, UPDATE, DELETE ON routing_outbox TO router_worker;
GRANT INSERT (event_id, after_subscription, through_subscription, newest_change, snapshot, sagas_started)
    ON routing_decisions, routing_decisions_of_later_parts TO router_worker;
GRANT INSERT (event_id, subscription_id, ordering_key) ON webhook_delivery_sagas TO router_worker;
GRANT SELECT (id, event_id, subscription_id, requeued_from, resent_from) ON webhook_delivery_sagas TO router_worker;

-- saga_orchestrator: the only role that changes sagas; inserts jobs and dead letters. A dead letter records why its
-- subscription was disabled.
GRANT SELECT ON events, webhook_delivery_sagas, webhook_delivery_jobs, dead_letters TO saga_orchestrator;
GRANT SELECT (id, tenant_id, event_types, filter, filter_path, callback_url, pending_callback_url, description, active,
              verified, eligible_since, eligible_after_event, eligible_snapshot, max_retry_limit, base_delay_seconds,
              timeout_seconds, max_in_flight, rate_limit_count, rate_limit_seconds, ordered, max_wait_seconds,
              circuit_breaker, format, paused_at, resumed_at, discard_through, created_at, updated_at, deleted_at)
    ON subscriptions TO saga_orchestrator, dead_letter_operator;  -- all but headers
GRANT SELECT (subscription_id, disabled_at, disabled_reason, disabled_failing_since) ON subscription_health
    TO saga_orchestrator;
GRANT UPDATE (status, attempt_count, next_attempt_at, final_error_code, updated_at)
    ON webhook_delivery_sagas TO saga_orchestrator;
GRANT SELECT, UPDATE (version, in_flight_limit, limit_halved_at, tokens, tokens_at, retry_after_until,
                      failures_in_a_row, breaker_opened_at, probes, probe_at, probe_saga_id, slow_until, wake_at,
                      order_cursor, discard_through)
    ON subscription_flow TO saga_orchestrator;
GRANT EXECUTE ON FUNCTION earlier_event_waits, in_progress TO saga_orchestrator;
GRANT INSERT (saga_id, subscription_id, attempt_number, attempt_at, max_attempts, slow)
    ON webhook_delivery_jobs TO saga_orchestrator;
GRANT UPDATE (dispatched_at) ON webhook_delivery_jobs TO saga_orchestrator;
GRANT INSERT (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, reason, failed_at,
              payload_snapshot)
    ON dead_letters TO saga_orchestrator;

-- job_worker: claims jobs and writes their results. It decrypts secrets and header values.
GRANT SELECT ON webhook_delivery_jobs, webhook_delivery_sagas, events, subscriptions, subscription_secrets
    TO job_worker;
GRANT UPDATE (status, lease_until, worker_id, claim_count, leased_at, finished_at, duration_ms, response_status,
              error_code, response_body, response_truncated, retry_after_seconds, resolved_ip, reconnected,
              own_header_names, sent_format, response_headers)
    ON webhook_delivery_jobs TO job_worker;

-- lease_cleaner: resets expired leases, and records that the pipeline is working.
GRANT SELECT ON webhook_delivery_jobs TO lease_cleaner;
GRANT UPDATE (status, lease_until, error_code, dispatched_at, lost_leases) ON webhook_delivery_jobs TO lease_cleaner;
GRANT SELECT, UPDATE (at_work_since) ON work_state TO lease_cleaner;

-- endpoint_health_monitor: maintains endpoint health and disables failing endpoints. A role of its own, because
-- neither the worker nor the orchestrator may change a subscription. It reads how attempts ended, never requests or
-- answers; of a subscription it changes active only; and it inserts operational events.
GRANT SELECT (id, subscription_id, status, error_code, leased_at, finished_at)
    ON webhook_delivery_jobs TO endpoint_health_monitor;
GRANT SELECT (id, tenant_id, event_types, callback_url, active, verified, deleted_at)
    ON subscriptions TO endpoint_health_monitor;
GRANT SELECT ON subscription_patterns TO endpoint_health_monitor;
GRANT UPDATE (active) ON subscriptions TO endpoint_health_monitor;
GRANT EXECUTE ON FUNCTION are_event_types, patterns_of_type TO endpoint_health_monitor;
GRANT SELECT ON subscription_health, subscription_health_mark TO endpoint_health_monitor;
GRANT UPDATE (consecutive_failures, first_failure_at, last_failure_at, last_success_at, last_error_code, warned_at_50,
              warned_at_90, disabled_at, disabled_reason, disabled_failing_since, breaker_told_at,
              told_failing_since)
    ON subscription_health TO endpoint_health_monitor;
GRANT SELECT (subscription_id, breaker_opened_at, failures_in_a_row) ON subscription_flow TO endpoint_health_monitor;
GRANT UPDATE (counted_until) ON subscription_health_mark TO endpoint_health_monitor;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_health_behind TO endpoint_health_monitor;
GRANT SELECT, UPDATE, DELETE ON operational_outbox TO endpoint_health_monitor;
GRANT SELECT (id, saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, failed_at)
    ON dead_letters TO endpoint_health_monitor;
GRANT SELECT (id, attempt_count) ON webhook_delivery_sagas TO endpoint_health_monitor;
GRANT SELECT (id, webhook_id, tenant_id, source, external_id) ON events TO endpoint_health_monitor;
GRANT INSERT (tenant_id, event_type, source, external_id, payload) ON events TO endpoint_health_monitor;

-- subscription_admin: configuration with secrets and headers, health, and what was missed.
GRANT SELECT, INSERT, UPDATE, DELETE ON event_types TO subscription_admin;
GRANT SELECT, INSERT, UPDATE ON subscriptions TO subscription_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON subscription_secrets TO subscription_admin;
GRANT SELECT ON subscription_health, subscription_health_mark, subscription_flow TO subscription_admin;
GRANT SELECT (id, event_id, subscription_id, status, attempt_count, next_attempt_at, ordering_key)
    ON webhook_delivery_sagas TO subscription_admin;
GRANT EXECUTE ON FUNCTION are_event_types, patterns_of_type, missed_while_disabled, check_api_key TO subscription_admin;

-- dead_letter_operator: reads everything except secrets and headers (for subscriptions see above), and changes data
-- through functions only. Of secrets it reads the ids, which the audit compares with their sequence; of migrations
-- the names, for `hooksaga doctor`.
GRANT SELECT ON events, routing_outbox, webhook_delivery_sagas, webhook_delivery_jobs, dead_letters,
    subscription_flow, subscription_patterns, subscription_pattern_history, subscription_history, routing_decisions,
    bulk_operations, bulk_operation_lanes, retention_state, retention_days, erasures, work_state, event_types
    TO dead_letter_operator;
GRANT SELECT (id) ON subscription_secrets TO dead_letter_operator;
GRANT SELECT (name) ON hooksaga_migrations TO dead_letter_operator;
GRANT EXECUTE ON FUNCTION patterns_of_type, types_of_patterns, events_around, accepted_after, change_was_seen,
    earlier_event_waits, filter_matches, compared_attributes, events_with_attribute, requeue_dead_letter, resend_sagas,
    retry_now, is_to_resend, count_bulk_lanes, start_bulk_operation, step_bulk_operation, move_bulk_operation,
    pace_bulk_operation, retention_horizon, prune_finished, prune_dead_letters, remove_payloads, prune_events,
    plan_retention, start_erasure, step_erasure, check_api_key, create_api_key, list_api_keys,
    revoke_api_key, create_console_sign_in, use_console_sign_in, end_sessions, session_has_ended
    TO dead_letter_operator;

-- The audit reports how many ids are left. SELECT on a sequence does not allow nextval.
GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO dead_letter_operator;

-- retention_worker: runs retention and erasures through their functions, and reads how far it is. It reads no other row.
GRANT EXECUTE ON FUNCTION plan_retention, prune_finished, prune_dead_letters, remove_payloads, prune_events, step_erasure
    TO retention_worker;

-- retention_operator: owns the functions of retention and erasure only. UPDATE on id is needed to lock rows; a GENERATED ALWAYS id
-- cannot be updated.
GRANT SELECT, UPDATE (id), DELETE ON webhook_delivery_sagas, webhook_delivery_jobs TO retention_operator;
GRANT UPDATE (status, final_error_code, ordering_key, updated_at) ON webhook_delivery_sagas TO retention_operator;
GRANT UPDATE (erased, response_body, response_headers, response_truncated, own_header_names) ON webhook_delivery_jobs
    TO retention_operator;
GRANT INSERT (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, reason, failed_at,
              payload_snapshot)
    ON dead_letters TO retention_operator;
GRANT SELECT (id, saga_id, event_id, subscription_id, final_error_code, failed_at, payload_snapshot),
      UPDATE (id, payload_snapshot), DELETE ON dead_letters TO retention_operator;
GRANT SELECT (id, tenant_id, event_type, created_at, removed_at, erasure_id, attributes, extracted_attributes), DELETE,
      UPDATE (id, payload, source, external_id, traceparent, ordering_key, attributes,
              extracted_attributes, cloud_event, removed_at, erasure_id)
    ON events TO retention_operator;
GRANT SELECT (event_id), UPDATE (ordering_key) ON routing_outbox TO retention_operator;
GRANT SELECT (event_id), DELETE ON routing_decisions TO retention_operator;
GRANT SELECT (dead_letter_id) ON operational_outbox TO retention_operator;
GRANT SELECT, UPDATE (horizon, event_horizon, payload_horizon, moved_at) ON retention_state TO retention_operator;
GRANT SELECT, UPDATE (looked_at, looked_id) ON retention_progress TO retention_operator;
GRANT SELECT, INSERT, UPDATE (deleted, horizon) ON retention_days TO retention_operator;
GRANT SELECT, INSERT, DELETE ON retention_left TO retention_operator;
GRANT SELECT, UPDATE (status, after_id, left_from, events, dead_letters, attempts, ended, in_flight, steps, last_step_at,
                      finished_at, attribute_values)
    ON erasures TO retention_operator;
GRANT SELECT (id, tenant_id) ON subscriptions TO retention_operator;
GRANT SELECT (subscription_id, version, wake_at, order_cursor), UPDATE (version, wake_at, order_cursor)
    ON subscription_flow TO retention_operator;
GRANT EXECUTE ON FUNCTION begin_retention_batch, note_deleted, prune_passed_events, lock_content, lock_whole_pairs,
    erase_events, wake_subscriptions TO retention_operator;

-- Work that nobody does is looked for by the sweep, the audit and the console too.
GRANT SELECT ON oldest_due_saga TO saga_orchestrator, dead_letter_operator;
GRANT SELECT ON oldest_due_by_subscription TO dead_letter_operator;

-- How far retention is behind: its own metric, and the console.
GRANT SELECT ON retention_lag TO retention_worker, dead_letter_operator;

-- On AWS the health monitor measures how many subscriptions wait.
GRANT SELECT ON subscriptions_by_flow_state TO endpoint_health_monitor;

-- observer: the views.
GRANT SELECT ON outbox_age, oldest_due_saga, subscriptions_by_flow_state, retry_debt_by_subscription,
    in_flight_by_subscription, deliveries_per_minute, retention_lag TO observer;

-- Last, because afterwards only the new owner may grant rights on the function.
DO $$ BEGIN PERFORM give_retention_its_owner(); END $$;

-- A new database has never been stopped.
INSERT INTO work_state (at_work_since) VALUES ('-infinity');
