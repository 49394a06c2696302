-- Why did a subscription not get an event? The answer is what the router saw when it routed the event, not what
-- is true now. So the facts that routing asks for are kept as they change, and the router writes down, beside the
-- sagas that it starts, which of them it could see.

-- One row per change of a subscription in anything that routing asks for. changed_by is the transaction of the
-- change: whether a snapshot saw that is exact, where changed_at alone could be before the commit.
CREATE TABLE subscription_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions (id),
    tenant_id varchar(100) NOT NULL,
    event_type varchar(100) NOT NULL,
    active boolean NOT NULL,
    verified boolean NOT NULL,
    eligible_since timestamptz,
    deleted_at timestamptz,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by xid8 NOT NULL DEFAULT pg_current_xact_id()
);

-- The newest row of one subscription that an event's routing saw.
CREATE INDEX idx_history_subscription ON subscription_history (subscription_id, changed_at, id);

-- Every subscription of a tenant that ever took an event type: who matched, and who nearly did.
CREATE INDEX idx_history_type ON subscription_history (tenant_id, event_type, subscription_id);

-- Every subscription of a tenant, a page at a time.
CREATE INDEX idx_sub_tenant ON subscriptions (tenant_id, id);

CREATE FUNCTION record_subscription_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO subscription_history (subscription_id, tenant_id, event_type, active, verified, eligible_since,
                                      deleted_at)
    VALUES (NEW.id, NEW.tenant_id, NEW.event_type, NEW.active, NEW.verified, NEW.eligible_since, NEW.deleted_at);
    RETURN NULL;
END
$$;

CREATE TRIGGER a_new_subscription_is_recorded AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION record_subscription_facts();

CREATE TRIGGER a_changed_subscription_is_recorded AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        (NEW.event_type, NEW.active, NEW.verified, NEW.eligible_since, NEW.deleted_at)
        IS DISTINCT FROM
        (OLD.event_type, OLD.active, OLD.verified, OLD.eligible_since, OLD.deleted_at)
    )
    EXECUTE FUNCTION record_subscription_facts();

-- Routing asks for the tenant too, and sagas, dead letters and this history are shown by it.
CREATE TRIGGER a_subscription_keeps_its_tenant BEFORE UPDATE ON subscriptions
    FOR EACH ROW WHEN (NEW.tenant_id <> OLD.tenant_id)
    EXECUTE FUNCTION refuse_change('a subscription keeps its tenant');

-- Whoever is there already begins now. Creating the triggers has locked the table against writers, so nothing
-- changes between the two.
INSERT INTO subscription_history (subscription_id, tenant_id, event_type, active, verified, eligible_since, deleted_at)
SELECT id, tenant_id, event_type, active, verified, eligible_since, deleted_at FROM subscriptions ORDER BY id;

CREATE TRIGGER subscription_history_never_changes BEFORE UPDATE OR DELETE OR TRUNCATE ON subscription_history
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('history is immutable');

-- One row per routed event, written by the statement that starts its sagas. routed_at is the start of that
-- transaction, so the sagas that it started have the same moment in created_at; snapshot is what the statement
-- could see. No foreign key: an event leaves the outbox, which has one, in the same statement, and events never go.
CREATE TABLE routing_decisions (
    event_id bigint PRIMARY KEY,
    routed_at timestamptz NOT NULL DEFAULT now(),
    snapshot pg_snapshot NOT NULL,
    sagas_started integer NOT NULL
);

CREATE TRIGGER routing_decisions_never_change BEFORE UPDATE OR DELETE OR TRUNCATE ON routing_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('what was decided is history');

GRANT INSERT (event_id, snapshot, sagas_started) ON routing_decisions TO router_worker;
GRANT SELECT ON subscription_history, routing_decisions TO dead_letter_operator;
GRANT SELECT ON SEQUENCE subscription_history_id_seq TO dead_letter_operator;
