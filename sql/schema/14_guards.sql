-- Guards: what the database rejects, whatever role asks. The legal transitions are those of
-- shared/hooksaga/core/saga.py and bulk.py; a test compares every pair. Row triggers have their rule in WHEN, so a
-- legal change never enters PL/pgSQL. Every rejection has the SQLSTATE HS001, except a missing reference.

-- load: functions/refuse_change.sql
-- load: functions/refuse_row.sql

-- Tables that are append-only, or never lose rows. Events and dead letters change for one role only, whose functions
-- delete what is old and remove content (decision 90); row triggers below bind that role too.
CREATE TRIGGER events_never_change BEFORE UPDATE OR DELETE ON events
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('events are immutable');
CREATE TRIGGER events_are_never_truncated BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('events are immutable');
CREATE TRIGGER dead_letters_never_change BEFORE UPDATE OR DELETE ON dead_letters
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('dead letters are immutable');
CREATE TRIGGER dead_letters_are_never_truncated BEFORE TRUNCATE ON dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('dead letters are immutable');
CREATE TRIGGER subscription_history_never_changes BEFORE UPDATE OR DELETE OR TRUNCATE ON subscription_history
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('history is immutable');
CREATE TRIGGER subscription_pattern_history_never_changes
    BEFORE UPDATE OR DELETE OR TRUNCATE ON subscription_pattern_history
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('history is immutable');
CREATE TRIGGER routing_decisions_never_change BEFORE UPDATE OR TRUNCATE ON routing_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('what was decided is history');
CREATE TRIGGER routing_decisions_are_never_deleted BEFORE DELETE ON routing_decisions
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('what was decided is history');
CREATE TRIGGER routing_decisions_of_later_parts_never_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON routing_decisions_of_later_parts
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('what was decided is history');
CREATE TRIGGER subscriptions_are_never_deleted BEFORE DELETE OR TRUNCATE ON subscriptions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a subscription is deactivated, never deleted');
CREATE TRIGGER bulk_operations_are_kept BEFORE DELETE OR TRUNCATE ON bulk_operations
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of who wanted what');
CREATE TRIGGER bulk_operation_lanes_are_kept BEFORE DELETE OR TRUNCATE ON bulk_operation_lanes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of how far it came');
CREATE TRIGGER sagas_are_never_truncated BEFORE TRUNCATE ON webhook_delivery_sagas
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('sagas are deleted by retention only');
CREATE TRIGGER jobs_are_never_truncated BEFORE TRUNCATE ON webhook_delivery_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('jobs are deleted by retention only');

-- Only retention deletes sagas, jobs, dead letters and events, and even retention_operator can delete only what ended
-- more than a day ago and what nothing refers to any more.
CREATE TRIGGER sagas_are_never_deleted BEFORE DELETE ON webhook_delivery_sagas
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('sagas are deleted by retention only');
CREATE TRIGGER jobs_are_never_deleted BEFORE DELETE ON webhook_delivery_jobs
    FOR EACH STATEMENT WHEN (current_user <> 'retention_operator')
    EXECUTE FUNCTION refuse_change('jobs are deleted by retention only');
CREATE TRIGGER only_ended_sagas_are_pruned BEFORE DELETE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (
        OLD.status NOT IN ('Completed', 'DeadLettered') OR OLD.updated_at > now() - interval '1 day'
    )
    EXECUTE FUNCTION refuse_change('only a saga that ended more than a day ago is pruned');
CREATE TRIGGER only_finished_jobs_are_pruned BEFORE DELETE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        OLD.status IN ('Pending', 'Leased') OR OLD.finished_at > now() - interval '1 day'
    )
    EXECUTE FUNCTION refuse_change('only a job that finished more than a day ago is pruned');
CREATE TRIGGER only_old_dead_letters_are_pruned BEFORE DELETE ON dead_letters
    FOR EACH ROW WHEN (OLD.failed_at > now() - interval '1 day')
    EXECUTE FUNCTION refuse_change('only a dead letter that is more than a day old is pruned');
CREATE TRIGGER only_old_events_are_pruned BEFORE DELETE ON events
    FOR EACH ROW WHEN (OLD.created_at > now() - interval '1 day')
    EXECUTE FUNCTION refuse_change('only an event that is more than a day old is pruned');

-- load: functions/refuse_to_prune_what_is_used.sql

CREATE TRIGGER sagas_in_use_are_kept AFTER DELETE ON webhook_delivery_sagas
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_prune_what_is_used();
CREATE TRIGGER jobs_of_open_sagas_are_kept AFTER DELETE ON webhook_delivery_jobs
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_prune_what_is_used();
CREATE TRIGGER events_in_use_are_kept AFTER DELETE ON events
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_prune_what_is_used();

-- The one change of an event and of a dead letter: its content is removed. Retention removes payloads only, after a day.
CREATE TRIGGER events_only_lose_their_content BEFORE UPDATE ON events
    FOR EACH ROW WHEN (
        NEW.payload IS NOT NULL OR NEW.removed_at IS NULL
        OR (NEW.id, NEW.webhook_id, NEW.tenant_id, NEW.event_type, NEW.created_at, NEW.accepted_by)
            <> (OLD.id, OLD.webhook_id, OLD.tenant_id, OLD.event_type, OLD.created_at, OLD.accepted_by)
        OR NEW.test_subscription_id IS DISTINCT FROM OLD.test_subscription_id
        OR NEW.erasure_id IS DISTINCT FROM OLD.erasure_id AND OLD.erasure_id IS NOT NULL
        OR NEW.removed_at <> OLD.removed_at
        OR NEW.attributes <> OLD.attributes AND NEW.attributes <> '{}'
        OR NEW.extracted_attributes <> OLD.extracted_attributes AND NEW.extracted_attributes <> '{}'
        OR NEW.cloud_event IS DISTINCT FROM OLD.cloud_event AND NEW.cloud_event IS NOT NULL
        OR NEW.erasure_id IS NULL AND (
            OLD.created_at > now() - interval '1 day' OR NEW.source <> OLD.source
            OR NEW.attributes <> OLD.attributes OR NEW.extracted_attributes <> OLD.extracted_attributes
            OR (NEW.external_id, NEW.traceparent, NEW.ordering_key, NEW.cloud_event)
                IS DISTINCT FROM (OLD.external_id, OLD.traceparent, OLD.ordering_key, OLD.cloud_event))
    )
    EXECUTE FUNCTION refuse_change('an event only loses its content');
CREATE TRIGGER dead_letters_only_lose_their_payload BEFORE UPDATE ON dead_letters
    FOR EACH ROW WHEN (
        NEW.payload_snapshot IS NOT NULL
        OR (NEW.id, NEW.saga_id, NEW.event_id, NEW.subscription_id, NEW.tenant_id, NEW.event_type, NEW.failed_at)
            <> (OLD.id, OLD.saga_id, OLD.event_id, OLD.subscription_id, OLD.tenant_id, OLD.event_type, OLD.failed_at)
        OR (NEW.final_error_code, NEW.reason) IS DISTINCT FROM (OLD.final_error_code, OLD.reason)
    )
    EXECUTE FUNCTION refuse_change('a dead letter only loses its payload');

-- An erasure is the record of who wanted what, and why.
CREATE TRIGGER erasures_are_kept BEFORE DELETE OR TRUNCATE ON erasures
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of who erased what');
CREATE TRIGGER erasure_facts_hold BEFORE UPDATE ON erasures
    FOR EACH ROW WHEN (
        OLD.status = 'Completed'
        OR (NEW.id, NEW.tenant_id, NEW.reason, NEW.created_by, NEW.until_id, NEW.created_at)
            <> (OLD.id, OLD.tenant_id, OLD.reason, OLD.created_by, OLD.until_id, OLD.created_at)
        OR (NEW.event_id, NEW.webhook_id, NEW.created_by_key_id, NEW.attribute_name)
            IS DISTINCT FROM (OLD.event_id, OLD.webhook_id, OLD.created_by_key_id, OLD.attribute_name)
        OR NEW.attribute_values <> OLD.attribute_values
        OR NEW.events < OLD.events OR NEW.dead_letters < OLD.dead_letters OR NEW.attempts < OLD.attempts
        OR NEW.ended < OLD.ended OR NEW.in_flight < OLD.in_flight
    )
    EXECUTE FUNCTION refuse_change('who wanted what never changes, and counts only grow');

-- The retention horizon never moves back.
CREATE TRIGGER retention_horizon_stays BEFORE DELETE OR TRUNCATE ON retention_state
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('what was deleted stays deleted');
CREATE TRIGGER retention_horizon_moves_on BEFORE UPDATE ON retention_state
    FOR EACH ROW WHEN (
        num_nulls(NEW.horizon, NEW.event_horizon, NEW.payload_horizon)
            > num_nulls(OLD.horizon, OLD.event_horizon, OLD.payload_horizon)
        OR num_nulls(NEW.horizon, NEW.event_horizon, NEW.payload_horizon) = 3
        OR NEW.horizon < OLD.horizon OR NEW.event_horizon < OLD.event_horizon
        OR NEW.payload_horizon < OLD.payload_horizon
        OR greatest(NEW.horizon, NEW.event_horizon, NEW.payload_horizon) > now() - interval '1 day'
    )
    EXECUTE FUNCTION refuse_change('it only moves on, and stays a day behind');

CREATE TRIGGER totals_of_retention_stay BEFORE DELETE OR TRUNCATE ON retention_days
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is the record of what was deleted');
CREATE TRIGGER totals_of_retention_only_grow BEFORE UPDATE ON retention_days
    FOR EACH ROW WHEN (
        (NEW.day, NEW.kind, NEW.outcome) IS DISTINCT FROM (OLD.day, OLD.kind, OLD.outcome)
        OR NEW.deleted < OLD.deleted OR NEW.horizon < OLD.horizon
    )
    EXECUTE FUNCTION refuse_change('totals of deleted rows only grow');

-- Only the health monitor writes events of type hooksaga.* and source hooksaga, and it writes no others. So a
-- receiver can trust such an event, and the monitor cannot impersonate a producer.
-- load: functions/refuse_borrowed_event_type.sql

CREATE TRIGGER operational_events_are_the_monitors BEFORE INSERT ON events
    FOR EACH ROW WHEN (
        (NEW.event_type LIKE 'hooksaga.%') <> (current_user = 'endpoint_health_monitor')
        OR (NEW.source = 'hooksaga') <> (current_user = 'endpoint_health_monitor')
    )
    EXECUTE FUNCTION refuse_borrowed_event_type();

-- Routing, and the visibility of sagas, dead letters and history, depend on the tenant.
CREATE TRIGGER a_subscription_keeps_its_tenant BEFORE UPDATE ON subscriptions
    FOR EACH ROW WHEN (NEW.tenant_id <> OLD.tenant_id)
    EXECUTE FUNCTION refuse_change('a subscription keeps its tenant');

-- Sagas. A saga in a terminal state never changes in any column, except that an erasure removes its ordering key.
CREATE TRIGGER saga_starts_pending BEFORE INSERT ON webhook_delivery_sagas
    FOR EACH ROW WHEN (NEW.status <> 'Pending' OR NEW.attempt_count <> 0 OR NEW.final_error_code IS NOT NULL)
    EXECUTE FUNCTION refuse_row('saga');

CREATE TRIGGER saga_moves_are_legal BEFORE UPDATE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (
        OLD.status IN ('Completed', 'DeadLettered') AND NOT (
            current_user = 'retention_operator' AND NEW.ordering_key IS NULL
            AND (NEW.status, NEW.attempt_count, NEW.next_attempt_at, NEW.updated_at)
                = (OLD.status, OLD.attempt_count, OLD.next_attempt_at, OLD.updated_at)
            AND NEW.final_error_code IS NOT DISTINCT FROM OLD.final_error_code
        )
        OR NOT (
            OLD.status = NEW.status
            OR OLD.status = 'Pending' AND NEW.status IN ('InProgress', 'DeadLettered')
            OR OLD.status = 'InProgress' AND NEW.status IN ('Completed', 'PendingRetry', 'DeadLettered')
            OR OLD.status = 'PendingRetry' AND NEW.status IN ('InProgress', 'DeadLettered')
        )
    )
    EXECUTE FUNCTION refuse_row('saga', 'not a legal move');

-- attempt_count grows by one when a job's result is applied, and never otherwise. next_attempt_at names the current job
-- of a saga in progress: it stays from the start of the attempt on, and the next attempt has another one.
CREATE TRIGGER saga_facts_hold BEFORE UPDATE ON webhook_delivery_sagas
    FOR EACH ROW WHEN (
        NEW.attempt_count - OLD.attempt_count NOT BETWEEN
            CASE WHEN OLD.status = 'InProgress' AND NEW.status IN ('Completed', 'DeadLettered') THEN 1 ELSE 0 END
            AND CASE WHEN OLD.status = 'InProgress' AND NEW.status <> 'InProgress' THEN 1 ELSE 0 END
        OR NEW.status = 'InProgress' AND NEW.next_attempt_at <> OLD.next_attempt_at
        OR OLD.status = 'InProgress' AND NEW.status = 'PendingRetry' AND NEW.next_attempt_at = OLD.next_attempt_at
        OR (NEW.id, NEW.event_id, NEW.subscription_id, NEW.created_at)
            <> (OLD.id, OLD.event_id, OLD.subscription_id, OLD.created_at)
        OR (NEW.requeued_from, NEW.resent_from, NEW.bulk_operation_id)
            IS DISTINCT FROM (OLD.requeued_from, OLD.resent_from, OLD.bulk_operation_id)
        OR NEW.ordering_key IS DISTINCT FROM OLD.ordering_key
            AND NOT (current_user = 'retention_operator' AND NEW.ordering_key IS NULL)
    )
    EXECUTE FUNCTION refuse_row('saga', 'its pair and its origin never change, and attempt_count counts results only');

-- load: functions/refuse_sagas_of_nothing.sql

CREATE TRIGGER sagas_name_what_is_there AFTER INSERT ON webhook_delivery_sagas
    REFERENCING NEW TABLE AS new_sagas
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_sagas_of_nothing();

-- Jobs. A finished job never changes. A claim takes a Pending job only, increments claim_count, and sets worker_id and
-- lease_until, which only a Leased job has.
CREATE TRIGGER job_starts_pending BEFORE INSERT ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        NEW.status <> 'Pending' OR NEW.claim_count <> 0 OR NEW.lost_leases <> 0 OR NEW.worker_id IS NOT NULL
        OR NEW.lease_until IS NOT NULL OR NEW.finished_at IS NOT NULL
    )
    EXECUTE FUNCTION refuse_row('job');

CREATE TRIGGER job_moves_are_legal BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        NOT (
            OLD.status = NEW.status AND (OLD.status <> 'Leased' OR current_user = 'retention_operator')
            OR OLD.status = 'Pending' AND NEW.status = 'Leased'
            OR OLD.status = 'Leased' AND NEW.status IN ('Pending', 'Completed', 'Failed')
        )
    )
    EXECUTE FUNCTION refuse_row('job', 'not a legal move');

CREATE TRIGGER job_facts_hold BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        (NEW.id, NEW.saga_id, NEW.subscription_id, NEW.attempt_number, NEW.attempt_at, NEW.created_at)
            <> (OLD.id, OLD.saga_id, OLD.subscription_id, OLD.attempt_number, OLD.attempt_at, OLD.created_at)
        OR (NEW.max_attempts, NEW.slow) IS DISTINCT FROM (OLD.max_attempts, OLD.slow)
        OR NEW.erased <> OLD.erased AND (OLD.erased OR current_user <> 'retention_operator')
        OR NEW.claim_count <> OLD.claim_count
            + CASE WHEN OLD.status = 'Pending' AND NEW.status = 'Leased' THEN 1 ELSE 0 END
        OR NEW.lost_leases - OLD.lost_leases NOT BETWEEN 0 AND
            CASE WHEN OLD.status = 'Leased' AND NEW.status IN ('Pending', 'Failed') THEN 1 ELSE 0 END
        OR (NEW.status = 'Leased') <> (NEW.lease_until IS NOT NULL)
        OR NEW.status = 'Leased' AND NEW.worker_id IS NULL
        OR NEW.status = 'Completed' AND NEW.response_status IS NULL
        OR NEW.status = 'Failed' AND NEW.error_code IS NULL
    )
    EXECUTE FUNCTION refuse_row('job', 'its saga and attempt never change, and a claim or a result must be whole');

CREATE TRIGGER finished_job_never_changes BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (
        OLD.status IN ('Completed', 'Failed')
        AND NOT (
            (NEW.status, NEW.claim_count, NEW.reconnected) = (OLD.status, OLD.claim_count, OLD.reconnected)
            AND (NEW.response_status, NEW.error_code, NEW.worker_id, NEW.dispatched_at,
                 NEW.leased_at, NEW.finished_at, NEW.duration_ms, NEW.retry_after_seconds, NEW.resolved_ip,
                 NEW.sent_format)
                IS NOT DISTINCT FROM
                (OLD.response_status, OLD.error_code, OLD.worker_id, OLD.dispatched_at,
                 OLD.leased_at, OLD.finished_at, OLD.duration_ms, OLD.retry_after_seconds, OLD.resolved_ip,
                 OLD.sent_format)
            AND current_user = 'retention_operator' AND NEW.erased
            AND num_nonnulls(NEW.response_body, NEW.response_headers, NEW.own_header_names) = 0
        )
    )
    EXECUTE FUNCTION refuse_row('job', 'a finished job is history');

-- load: functions/drop_erased_answer.sql

CREATE TRIGGER an_erased_job_stores_no_answer BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (NEW.erased AND num_nonnulls(NEW.response_body, NEW.response_headers, NEW.own_header_names) > 0)
    EXECUTE FUNCTION drop_erased_answer();

-- load: functions/stamp_finished_at.sql

CREATE TRIGGER a_finished_job_has_its_time BEFORE UPDATE ON webhook_delivery_jobs
    FOR EACH ROW WHEN (OLD.status = 'Leased' AND NEW.status IN ('Completed', 'Failed') AND NEW.finished_at IS NULL)
    EXECUTE FUNCTION stamp_finished_at();

-- load: functions/refuse_jobs_of_ended_sagas.sql

CREATE TRIGGER no_jobs_for_ended_sagas AFTER INSERT ON webhook_delivery_jobs
    REFERENCING NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_jobs_of_ended_sagas();

-- Dead letters.
-- load: functions/refuse_untrue_dead_letters.sql

CREATE TRIGGER dead_letters_are_true AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS new_dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_untrue_dead_letters();

-- Bulk operations.
-- load: functions/refuse_lanes_of_nothing.sql

CREATE TRIGGER lanes_name_what_is_there AFTER INSERT ON bulk_operation_lanes
    REFERENCING NEW TABLE AS new_lanes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_lanes_of_nothing();

CREATE TRIGGER bulk_operation_moves_are_legal BEFORE UPDATE ON bulk_operations
    FOR EACH ROW WHEN (
        NOT (
            OLD.status = 'Running'
            OR OLD.status = 'Paused' AND NEW.status IN ('Paused', 'Running', 'Stopped')
        )
    )
    EXECUTE FUNCTION refuse_row('bulk operation', 'not a legal move');

CREATE TRIGGER bulk_operation_facts_hold BEFORE UPDATE ON bulk_operations
    FOR EACH ROW WHEN (
        (NEW.id, NEW.kind, NEW.filter, NEW.reason, NEW.created_by, NEW.until_id, NEW.created_at)
            <> (OLD.id, OLD.kind, OLD.filter, OLD.reason, OLD.created_by, OLD.until_id, OLD.created_at)
        OR (NEW.tenant_id, NEW.created_by_key_id) IS DISTINCT FROM (OLD.tenant_id, OLD.created_by_key_id)
        OR NEW.matched < OLD.matched OR NEW.done < OLD.done OR NEW.skipped < OLD.skipped
    )
    EXECUTE FUNCTION refuse_row('bulk operation', 'who wanted what never changes, and counts only grow');
