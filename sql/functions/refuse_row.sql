-- Rejects a change of a row. The trigger's arguments are the kind of row and the rule.
CREATE OR REPLACE FUNCTION refuse_row() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION '% starts as Pending and untried', TG_ARGV[0] USING ERRCODE = 'HS001';
    END IF;
    RAISE EXCEPTION '% % cannot go from % to %: %', TG_ARGV[0], OLD.id, OLD.status, NEW.status, TG_ARGV[1]
        USING ERRCODE = 'HS001';
END
$$;
