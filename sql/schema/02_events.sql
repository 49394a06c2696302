-- load: functions/uuidv7.sql

-- The event store: append-only but for retention and erasure (decisions 90 and 91). payload is json, not jsonb: json keeps
-- the text unchanged, and that text is signed and sent. created_at is for display and for time ranges; accepted_by, the
-- transaction that stored the event, orders events, because a clock can be set back (decision 57). traceparent is the
-- producer's W3C trace; when it is null, the trace id is the webhook_id.
--
-- attributes: names and values that the producer gave, for filters; the payload is never read for them.
--
-- extracted_attributes: names and values that ingest read from the payload, as the catalogue says for the type. They
-- follow from the payload, so they do not belong to the content that an idempotency key is compared with.
-- attributes_of_event says which attributes an event has.
--
-- cloud_event: for an event that came in as a CloudEvent, its attributes that no other column holds, as strings: time,
-- dataschema, datacontenttype, tenantid, traceparent, tracestate. They are sent again to subscriptions that receive
-- CloudEvents. An EventBridge event is one too: its id, source and time mean the same. Null: it did not come in as one.
--
-- test_subscription_id: a test event, which this subscription receives and no other.
--
-- removed_at: when the payload was removed, because it was old or because of an erasure; erasure_id: that erasure, which
-- removed all else that the producer chose too, except the type.
--
-- A producer that inserts events in its own transaction may set created_at, but only to a time that programs can
-- represent: seconds mistaken for milliseconds would stop every stage that reads the event.
-- load: functions/attributes_of_event.sql

CREATE TABLE events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id uuid NOT NULL DEFAULT uuidv7(),
    tenant_id varchar(100) NOT NULL DEFAULT 'default',
    event_type varchar(100) NOT NULL,
    source varchar(255) NOT NULL DEFAULT '',
    external_id varchar(255),
    created_at timestamptz NOT NULL DEFAULT now(),
    accepted_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
    payload json,
    traceparent varchar(55),
    ordering_key varchar(255),
    test_subscription_id bigint,
    removed_at timestamptz,
    erasure_id bigint,
    attributes jsonb NOT NULL DEFAULT '{}',
    extracted_attributes jsonb NOT NULL DEFAULT '{}',
    cloud_event jsonb,
    CONSTRAINT only_a_removed_payload_is_missing CHECK (num_nonnulls(payload, removed_at) = 1),
    CONSTRAINT an_erased_event_has_no_content CHECK (
        erasure_id IS NULL
        OR removed_at IS NOT NULL AND num_nonnulls(external_id, traceparent, ordering_key, cloud_event) = 0
           AND source = '' AND attributes = '{}' AND extracted_attributes = '{}'),
    CONSTRAINT event_type_is_valid CHECK (event_type ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT tenant_id_is_valid CHECK (tenant_id ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT external_id_is_not_empty CHECK (external_id <> ''),
    CONSTRAINT ordering_key_is_not_empty CHECK (ordering_key <> ''),
    CONSTRAINT traceparent_is_valid CHECK (traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
    CONSTRAINT extracted_attributes_are_an_object CHECK (jsonb_typeof(extracted_attributes) = 'object'),
    CONSTRAINT cloud_event_is_an_object CHECK (jsonb_typeof(cloud_event) = 'object'),
    CONSTRAINT created_at_is_representable
        CHECK (created_at >= '0001-01-02 00:00Z' AND created_at < '9999-12-31 00:00Z')
);

-- A trigger and not a CHECK: a CHECK needs the right to execute its function, for every role that inserts events. The
-- API has checked the same rules before it inserts, so its role does not pay for the check again.
-- load: functions/refuse_wrong_attributes.sql

CREATE TRIGGER attributes_are_valid BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.attributes <> '{}' AND current_user <> 'event_ingest_writer')
    EXECUTE FUNCTION refuse_wrong_attributes();

CREATE UNIQUE INDEX uniq_event_webhook_id ON events (webhook_id);
CREATE INDEX idx_event_created ON events (created_at);
CREATE INDEX idx_event_type ON events (event_type, created_at);
CREATE INDEX idx_event_tenant ON events (tenant_id, created_at);

-- Search by attributes, with their name or by the value alone (decision 89). A short list of pending entries, so that no
-- single INSERT has many of them to sort in.
-- The expression is the body of attributes_of_event, which the planner inlines, so that a call of it uses this index.
CREATE INDEX idx_event_attributes ON events USING gin ((extracted_attributes || attributes))
    WITH (gin_pending_list_limit = 256) WHERE attributes <> '{}' OR extracted_attributes <> '{}';

-- One event per Idempotency-Key, or per CloudEvents id and source. The key comes first, so that an event is found by
-- its key alone.
CREATE UNIQUE INDEX uniq_event_external_id ON events (external_id, tenant_id, source)
    WHERE external_id IS NOT NULL;

-- load: functions/accepted_after.sql
-- load: functions/patterns_of_type.sql
-- load: functions/types_of_patterns.sql
-- load: functions/events_with_attribute.sql
-- load: functions/compared_attributes.sql
-- load: functions/filter_matches.sql

-- Events that are not routed yet. The router deletes a row in the transaction that inserts the event's sagas. An
-- event with very many matching subscriptions is routed in parts, one transaction each: a single statement could
-- exceed the statement timeout, and then neither this event nor the rest of its batch would ever be routed.
-- Subscriptions with ids up to started_through have their saga; the row stays until the last part is done.
CREATE TABLE routing_outbox (
    event_id bigint PRIMARY KEY REFERENCES events (id),
    created_at timestamptz NOT NULL,
    ordering_key varchar(255),
    started_through bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- What the start of an ordered delivery asks: is an earlier event of its key still to be routed?
CREATE INDEX idx_outbox_order ON routing_outbox (ordering_key, event_id) WHERE ordering_key IS NOT NULL;

-- load: functions/put_new_events_in_outbox.sql

CREATE TRIGGER put_new_events_in_outbox AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_events
    FOR EACH STATEMENT EXECUTE FUNCTION put_new_events_in_outbox();
