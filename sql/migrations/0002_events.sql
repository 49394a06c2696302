-- The event store: append-only (r04 §1). payload is json, not jsonb: json keeps the text as it came,
-- and that text is what is signed and sent.
CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id uuid NOT NULL DEFAULT uuidv7(),
    tenant_id varchar(100) NOT NULL DEFAULT 'default',
    event_type varchar(100) NOT NULL,
    source varchar(255) NOT NULL DEFAULT '',
    external_id varchar(255),
    created_at timestamptz NOT NULL DEFAULT now(),
    payload json NOT NULL,
    CONSTRAINT event_type_is_valid CHECK (event_type ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT tenant_id_is_valid CHECK (tenant_id ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT external_id_is_not_empty CHECK (external_id <> '')
);

CREATE UNIQUE INDEX uniq_event_webhook_id ON events (webhook_id);
CREATE INDEX idx_event_created ON events (created_at);
CREATE INDEX idx_event_type ON events (event_type, created_at);

-- An Idempotency-Key, or a CloudEvents id with its source, makes one event only.
CREATE UNIQUE INDEX uniq_event_external_id ON events (tenant_id, source, external_id)
    WHERE external_id IS NOT NULL;

-- Events that are not routed yet. The router deletes a row in the transaction that inserts its sagas.
CREATE TABLE routing_outbox (
    event_id bigint PRIMARY KEY REFERENCES events (id),
    created_at timestamptz NOT NULL
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
