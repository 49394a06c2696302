-- A dead letter is told to others, so its commit waits for the disk (sql/README.md).
-- Dead letters of operational events are excluded, or one failing subscriber would cause an endless loop. Without a
-- subscriber nothing is written.
CREATE OR REPLACE FUNCTION put_dead_letters_in_operational_outbox() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true) FROM new_dead_letters LIMIT 1;
    INSERT INTO operational_outbox (dead_letter_id)
    SELECT d.id
      FROM new_dead_letters d
     WHERE d.event_type NOT LIKE 'hooksaga.%'
       AND EXISTS (SELECT FROM subscription_patterns s
                    WHERE s.tenant_id = d.tenant_id
                      AND s.pattern = ANY (patterns_of_type('hooksaga.delivery.dead_lettered')));
    RETURN NULL;
END
$$;
