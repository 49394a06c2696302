-- The event store: append-only. payload is json, not jsonb: json keeps the text as it came,
-- and that text is what is signed and sent. created_at is for people and for ranges of time; accepted_by, the
-- transaction that stored the event, is for comparisons of order, because a clock can be set back (decision 57).
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id uuid NOT NULL DEFAULT uuidv7(),
    tenant_id varchar(100) NOT NULL DEFAULT 'default',
    event_type varchar(100) NOT NULL,
    source varchar(255) NOT NULL DEFAULT '',
    external_id varchar(255),
    created_at timestamptz NOT NULL DEFAULT now(),
    accepted_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    payload json NOT NULL,
    CONSTRAINT event_type_is_valid CHECK (event_type ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT tenant_id_is_valid CHECK (tenant_id ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT external_id_is_not_empty CHECK (external_id <> '')
);

CREATE UNIQUE INDEX uniq_event_webhook_id ON events (webhook_id);
CREATE INDEX idx_event_created ON events (created_at);
CREATE INDEX idx_event_type ON events (event_type, created_at);

-- Whether an event was accepted after a moment, whatever any clock says. The moment is what a transaction saw: the
-- newest event, and a snapshot. A greater id was given later; a lower one may still have been in flight then, and the
-- snapshot tells. Both sides are needed: ids precede commits, and transaction ids mean nothing after a dump was
-- restored into another cluster, where every new event has a greater id. Null when there is no moment. Every
-- comparison of an event with a subscription's eligibility goes through here; the planner inlines it.
CREATE FUNCTION accepted_after(event_id bigint, accepted_by xid8, newest_event bigint, seen pg_snapshot) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_id > newest_event OR NOT pg_visible_in_snapshot(accepted_by, seen);

-- An Idempotency-Key, or a CloudEvents id with its source, makes one event only.
CREATE UNIQUE INDEX uniq_event_external_id ON events (tenant_id, source, external_id)
    WHERE external_id IS NOT NULL;

-- Events that are not routed yet. The router deletes a row in the transaction that inserts its sagas. An event that very
-- many subscriptions take is routed in parts, each a transaction: one statement for all of them could take longer than
-- a statement may, and then the event, and whatever stood beside it in the batch, would never be routed.
-- Subscriptions up to started_through have their saga; the row stays until the last part is done.
CREATE TABLE routing_outbox (
    event_id bigint PRIMARY KEY REFERENCES events (id),
    created_at timestamptz NOT NULL,
    started_through bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- A trigger writes the outbox, so that a producer that inserts into events in its own SQL transaction
-- is routed too, and the ingest role needs no right on the outbox.
CREATE FUNCTION put_new_events_in_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO routing_outbox (event_id, created_at) SELECT id, created_at FROM new_events;
    RETURN NULL;
END
$$;

CREATE TRIGGER put_new_events_in_outbox AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_events
    FOR EACH STATEMENT EXECUTE FUNCTION put_new_events_in_outbox();
