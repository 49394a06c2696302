-- What could not be delivered, with the payload as it was. tenant_id and event_type are copied
-- from the event, so that lists and filters stay on an index. final_error_code is the last attempt's; reason says why no
-- other was made, where that is not because of the last one's failure. Event and subscription are those of the saga: a
-- trigger in 0008 sees to it.
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

-- A requeued saga carries the event and the subscription of the dead letter that it names and starts from
-- nothing. SECURITY DEFINER: this is the only way in for an operator. One row for each id that
-- exists; where saga_id is null, reason says why. The insert and the answer are two statements, so that the
-- answer also sees a saga that another call has made meanwhile.
CREATE FUNCTION requeue_dead_letter(dead_letter_ids bigint[])
RETURNS TABLE (dead_letter_id bigint, saga_id bigint, created boolean, reason text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
#variable_conflict use_column
DECLARE
    made bigint[];
BEGIN
    WITH inserted AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from)
        SELECT d.event_id, d.subscription_id, d.id
          FROM dead_letters d JOIN subscriptions s ON s.id = d.subscription_id
         WHERE d.id = ANY (dead_letter_ids) AND s.active AND s.verified AND s.deleted_at IS NULL
         ORDER BY d.id
        ON CONFLICT (requeued_from) WHERE requeued_from IS NOT NULL DO NOTHING
        RETURNING requeued_from
    )
    SELECT array_agg(requeued_from) INTO made FROM inserted;
    RETURN QUERY
        SELECT d.id, s.id, d.id = ANY (coalesce(made, '{}')),
               CASE WHEN s.id IS NULL THEN 'subscription_inactive' END
          FROM dead_letters d LEFT JOIN webhook_delivery_sagas s ON s.requeued_from = d.id
         WHERE d.id = ANY (dead_letter_ids)
         ORDER BY d.id;
END
$$;
