-- Puts the decision of a later part where those are kept, once.
CREATE OR REPLACE FUNCTION keep_later_part() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO routing_decisions_of_later_parts (event_id, after_subscription, through_subscription, newest_change,
                                                  snapshot, sagas_started)
    VALUES (NEW.event_id, NEW.after_subscription, NEW.through_subscription, NEW.newest_change, NEW.snapshot,
            NEW.sagas_started)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
