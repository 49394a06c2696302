-- With the owner's rights, so that no role can set the revision by itself.
CREATE OR REPLACE FUNCTION renew_event_types_revision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    UPDATE event_types_revision SET revision = gen_random_uuid();
    RETURN NULL;
END
$$;
