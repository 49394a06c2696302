-- What could not be delivered, with the payload as it was. tenant_id and event_type are copied from the event, so that
-- lists and filters stay on an index. final_error_code is the last attempt's; reason says why no other was made, where
-- that is not because of the last one's failure. Event and subscription are those of the saga: a guard sees to it.
CREATE TABLE dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga_id bigint NOT NULL REFERENCES webhook_delivery_sagas (id),
    event_id bigint NOT NULL,
    subscription_id bigint NOT NULL,
    tenant_id varchar(100) NOT NULL,
    event_type varchar(100) NOT NULL,
    final_error_code varchar(100),
    reason varchar(300),
    failed_at timestamptz NOT NULL DEFAULT now(),
    payload_snapshot json NOT NULL,
    CONSTRAINT uniq_dead_saga UNIQUE (saga_id)
);

CREATE INDEX idx_dead_saga ON dead_letters (saga_id);
CREATE INDEX idx_dead_event ON dead_letters (event_id);

-- Lists run newest first, by any one of the filters.
CREATE INDEX idx_dead_tenant ON dead_letters (tenant_id, id);
CREATE INDEX idx_dead_subscription ON dead_letters (subscription_id, id);
CREATE INDEX idx_dead_event_type ON dead_letters (event_type, id);
CREATE INDEX idx_dead_error_code ON dead_letters (final_error_code, id);
CREATE INDEX idx_dead_failed_at ON dead_letters (failed_at);

-- load: functions/requeue_dead_letter.sql

-- Dead letters that a subscriber of hooksaga.delivery.dead_lettered has not been told of.
CREATE TABLE operational_outbox (
    dead_letter_id bigint PRIMARY KEY REFERENCES dead_letters (id),
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- load: functions/put_dead_letters_in_operational_outbox.sql

CREATE TRIGGER put_dead_letters_in_operational_outbox AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS new_dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION put_dead_letters_in_operational_outbox();
