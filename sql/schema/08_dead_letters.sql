-- Undelivered events, with their payload. tenant_id and event_type are copied from the event, so that lists and
-- filters need one index only. final_error_code is that of the last attempt; reason says why there was no further
-- attempt, unless the last failure is the reason. A trigger checks that event and subscription are those of the saga.
-- payload_snapshot is null when the event's payload was removed.
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
    payload_snapshot json,
    CONSTRAINT uniq_dead_saga UNIQUE (saga_id)
);

CREATE INDEX idx_dead_saga ON dead_letters (saga_id);
CREATE INDEX idx_dead_event ON dead_letters (event_id);

-- Lists, newest first, by any one filter.
CREATE INDEX idx_dead_tenant ON dead_letters (tenant_id, id);
CREATE INDEX idx_dead_subscription ON dead_letters (subscription_id, id);
CREATE INDEX idx_dead_event_type ON dead_letters (event_type, id);
CREATE INDEX idx_dead_error_code ON dead_letters (final_error_code, id);
CREATE INDEX idx_dead_failed_at ON dead_letters (failed_at);

-- load: functions/start_sagas_again.sql
-- load: functions/requeue_dead_letter.sql
-- load: functions/resend_sagas.sql

-- Dead letters for which no hooksaga.delivery.dead_lettered event exists yet.
CREATE TABLE operational_outbox (
    dead_letter_id bigint PRIMARY KEY REFERENCES dead_letters (id),
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- load: functions/put_dead_letters_in_operational_outbox.sql

CREATE TRIGGER put_dead_letters_in_operational_outbox AFTER INSERT ON dead_letters
    REFERENCING NEW TABLE AS new_dead_letters
    FOR EACH STATEMENT EXECUTE FUNCTION put_dead_letters_in_operational_outbox();
