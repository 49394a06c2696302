-- Rejects a statement. The trigger's argument is the reason.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'HS001';
END
$$;
