-- Why a subscription did not receive an event depends on what the router saw when it routed the event, not on the
-- current state. So each change that affects routing is recorded, and the router records with the sagas that it
-- starts which changes it saw.

-- One row per change of a subscription that affects routing, with the transaction that made it and its snapshot:
-- changed_by and changed_in are for change_was_seen(), changed_at is for display. waiting_events: the events in the
-- outbox when an eligible subscription changed, the only ones that its routing may omit later; null if there were
-- more than 500. The audit reads it, because it does not depend on accepted_after().
CREATE TABLE subscription_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions (id),
    tenant_id varchar(100) NOT NULL,
    event_types varchar(100)[] NOT NULL,
    filter json,
    filter_path jsonpath,
    active boolean NOT NULL,
    verified boolean NOT NULL,
    eligible_since timestamptz,
    eligible_after_event bigint,
    eligible_snapshot pg_snapshot,
    deleted_at timestamptz,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    changed_in pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
    waiting_events bigint[]
);

-- The newest change of a subscription that an event's routing saw.
CREATE INDEX idx_history_subscription ON subscription_history (subscription_id, id);

-- load: functions/record_subscription_facts.sql

CREATE TRIGGER a_new_subscription_is_recorded AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION record_subscription_facts();

CREATE TRIGGER a_changed_subscription_is_recorded AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        (NEW.event_types, NEW.filter::text, NEW.active, NEW.verified, NEW.eligible_after_event, NEW.deleted_at)
        IS DISTINCT FROM
        (OLD.event_types, OLD.filter::text, OLD.active, OLD.verified, OLD.eligible_after_event, OLD.deleted_at)
    )
    EXECUTE FUNCTION record_subscription_facts();

-- One row per routed event, written by the statement that starts its sagas; of an event that is routed in parts
-- (decision 56) the first part. A part covers the subscriptions after after_subscription (excluded) through
-- through_subscription; the first has no lower end, and the last, usually the only one, no upper end. routed_at is the
-- start of the transaction, equal to created_at of its sagas; snapshot is the statement's snapshot, and newest_change
-- the newest row of subscription_history in it. No foreign key: routing_outbox has one, the row leaves it in the same
-- statement, and retention deletes both in one transaction.
CREATE TABLE routing_decisions (
    event_id bigint PRIMARY KEY,
    after_subscription bigint,
    through_subscription bigint,
    routed_at timestamptz NOT NULL DEFAULT now(),
    newest_change bigint NOT NULL,
    sagas_started smallint NOT NULL,
    snapshot pg_snapshot NOT NULL,
    CONSTRAINT first_part_has_no_lower_end CHECK (after_subscription IS NULL) NO INHERIT,
    CONSTRAINT part_has_a_range CHECK (through_subscription > coalesce(after_subscription, 0))
);

-- The few later parts are kept apart, so that the key of all others is one number: 17 bytes less for an event. What
-- writes or reads routing_decisions has them too.
CREATE TABLE routing_decisions_of_later_parts (
    PRIMARY KEY (event_id, after_subscription)
) INHERITS (routing_decisions);

-- load: functions/keep_later_part.sql

CREATE TRIGGER later_parts_are_kept_apart BEFORE INSERT ON routing_decisions
    FOR EACH ROW WHEN (NEW.after_subscription IS NOT NULL)
    EXECUTE FUNCTION keep_later_part();

-- load: functions/change_was_seen.sql
