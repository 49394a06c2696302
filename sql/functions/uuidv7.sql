-- PostgreSQL 18 has uuidv7() itself. Older servers get it here: 48 bits of milliseconds, 12 bits of the fraction of a
-- millisecond and 62 random bits (RFC 9562, method 3), so that ids of one moment are nearly in order too.
DO $do$
BEGIN
    IF to_regprocedure('pg_catalog.uuidv7()') IS NULL THEN
        CREATE OR REPLACE FUNCTION uuidv7() RETURNS uuid
        LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
            SELECT encode(
                       substring(int8send(moment.microseconds / 1000) FROM 3)
                       || set_byte(set_byte(substring(uuid_send(gen_random_uuid()) FROM 7),
                                            0, 112 + (moment.microseconds % 1000 * 4096 / 1000 / 256)::int),
                                   1, (moment.microseconds % 1000 * 4096 / 1000 % 256)::int),
                       'hex')::uuid
              FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS microseconds) AS moment
        $$;
        GRANT EXECUTE ON FUNCTION uuidv7 TO PUBLIC;
    END IF;
END
$do$;
