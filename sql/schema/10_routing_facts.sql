-- Why did a subscription not get an event? The answer is what the router saw when it routed the event, not what
-- is true now. So the facts that routing asks for are kept as they change, and the router writes down, beside the
-- sagas that it starts, which of them it could see.

-- One row per change of a subscription in anything that routing asks for, and what its transaction was and saw:
-- changed_by and changed_in are for change_was_seen(); changed_at is for people. waiting_events are the events that
-- waited in the outbox when an eligible subscription changed: the only ones that its routing may leave out later. Null
-- where there were more than 500. The audit asks for it, because it shares no assumption with accepted_after().
CREATE TABLE subscription_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions (id),
    tenant_id varchar(100) NOT NULL,
    event_type varchar(100) NOT NULL,
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

-- The newest row of one subscription that an event's routing saw.
CREATE INDEX idx_history_subscription ON subscription_history (subscription_id, id);

-- Every subscription of a tenant that ever took an event type: who matched, and who nearly did.
CREATE INDEX idx_history_type ON subscription_history (tenant_id, event_type, subscription_id);

-- load: functions/record_subscription_facts.sql

CREATE TRIGGER a_new_subscription_is_recorded AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION record_subscription_facts();

CREATE TRIGGER a_changed_subscription_is_recorded AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        (NEW.event_type, NEW.active, NEW.verified, NEW.eligible_after_event, NEW.deleted_at)
        IS DISTINCT FROM
        (OLD.event_type, OLD.active, OLD.verified, OLD.eligible_after_event, OLD.deleted_at)
    )
    EXECUTE FUNCTION record_subscription_facts();

-- One row per routed event, or per part of one, written by the statement that starts its sagas. A part goes from
-- after_subscription, left out, through through_subscription; the last part, of most events the only one, has no upper
-- end. routed_at is the start of that transaction, so the sagas that it started have the same moment in created_at;
-- snapshot is what the statement could see, and newest_change the newest row of subscription_history in it. No foreign
-- key: an event leaves the outbox, which has one, in the same statement, and events never go.
CREATE TABLE routing_decisions (
    event_id bigint NOT NULL,
    after_subscription bigint NOT NULL DEFAULT 0,
    through_subscription bigint,
    routed_at timestamptz NOT NULL DEFAULT now(),
    newest_change bigint NOT NULL,
    snapshot pg_snapshot NOT NULL,
    sagas_started integer NOT NULL,
    PRIMARY KEY (event_id, after_subscription),
    CONSTRAINT part_has_a_range CHECK (through_subscription > after_subscription)
);

-- load: functions/change_was_seen.sql
