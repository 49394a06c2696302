-- The lease cleaner may not write finished_at, and needs not.
CREATE OR REPLACE FUNCTION stamp_finished_at() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.finished_at := clock_timestamp();
    RETURN NEW;
END
$$;
