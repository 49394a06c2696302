-- An operational event of anybody but the monitor, or another event of the monitor.
CREATE OR REPLACE FUNCTION refuse_borrowed_event_type() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events of type % and source % are not for %', NEW.event_type, NEW.source, current_user
        USING ERRCODE = 'HS001';
END
$$;
