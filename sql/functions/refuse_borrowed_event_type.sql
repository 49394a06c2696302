-- Rejects operational events of any role but the health monitor, and other events of the monitor.
CREATE OR REPLACE FUNCTION refuse_borrowed_event_type() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events of type % and source % are not for %', NEW.event_type, NEW.source, current_user
        USING ERRCODE = 'HS001';
END
$$;
