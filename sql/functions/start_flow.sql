-- Creates the flow row of a new subscription.
CREATE OR REPLACE FUNCTION start_flow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    INSERT INTO subscription_flow (subscription_id) VALUES (NEW.id);
    RETURN NULL;
END
$$;
