-- Stores the result of an attempt without the answer and its headers, because its event was erased meanwhile.
CREATE OR REPLACE FUNCTION drop_erased_answer() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.response_body := NULL;
    NEW.response_headers := NULL;
    NEW.response_truncated := false;
    NEW.own_header_names := NULL;
    RETURN NEW;
END
$$;
