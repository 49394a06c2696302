-- A subscription receives the events that are accepted after it last became active and verified. eligible_after_event
-- and eligible_snapshot are that moment for accepted_after(); eligible_since is for display. The snapshot is taken
-- before the change commits, so it never contains an event that is accepted after the commit. SECURITY DEFINER: roles
-- that change subscriptions need no right to read events.
--
-- verified always refers to callback_url: a new address waits in pending_callback_url until it is verified, or
-- replaces an address that was never verified.
CREATE OR REPLACE FUNCTION keep_subscription_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    is_eligible boolean := NEW.active AND NEW.verified AND NEW.deleted_at IS NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.callback_url <> OLD.callback_url AND NEW.verified
            AND NEW.callback_url IS DISTINCT FROM OLD.pending_callback_url THEN
            RAISE EXCEPTION 'subscription %: a verified callback_url is replaced by its pending one only', OLD.id
                USING ERRCODE = 'HS001';
        END IF;
        NEW.updated_at := clock_timestamp();
    END IF;
    IF NOT is_eligible THEN
        SELECT NULL, NULL, NULL INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    ELSIF TG_OP = 'UPDATE' AND OLD.eligible_after_event IS NOT NULL THEN
        SELECT OLD.eligible_since, OLD.eligible_after_event, OLD.eligible_snapshot
          INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    ELSE
        SELECT clock_timestamp(), coalesce((SELECT max(id) FROM events), 0), pg_current_snapshot()
          INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    END IF;
    RETURN NEW;
END
$$;
