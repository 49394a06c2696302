-- Queries of a rehearsal of migrations, by a superuser in an empty database that is dropped afterwards. Event triggers
-- record what the server says about each command; nothing is parsed.

-- name: begin_recording
CREATE SCHEMA rehearsal;
CREATE TABLE rehearsal.commands (
    n bigint GENERATED ALWAYS AS IDENTITY, tag text NOT NULL, object text, is_rewrite boolean NOT NULL DEFAULT false
);
CREATE FUNCTION rehearsal.note_command() RETURNS event_trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO rehearsal.commands (tag, object)
    SELECT command_tag, object_identity FROM pg_catalog.pg_event_trigger_ddl_commands();
END $$;
CREATE FUNCTION rehearsal.note_drop() RETURNS event_trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO rehearsal.commands (tag, object)
    SELECT 'DROP ' || upper(object_type), object_identity FROM pg_catalog.pg_event_trigger_dropped_objects()
     WHERE original AND NOT is_temporary;
END $$;
CREATE FUNCTION rehearsal.note_rewrite() RETURNS event_trigger LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    INSERT INTO rehearsal.commands (tag, object, is_rewrite)
    SELECT TG_TAG, relname, true FROM pg_catalog.pg_class WHERE oid = pg_catalog.pg_event_trigger_table_rewrite_oid();
END $$;
CREATE EVENT TRIGGER rehearsal_commands ON ddl_command_end EXECUTE FUNCTION rehearsal.note_command();
CREATE EVENT TRIGGER rehearsal_drops ON sql_drop EXECUTE FUNCTION rehearsal.note_drop();
CREATE EVENT TRIGGER rehearsal_rewrites ON table_rewrite EXECUTE FUNCTION rehearsal.note_rewrite();

-- name: take_commands
WITH taken AS (DELETE FROM rehearsal.commands RETURNING *)
SELECT tag, object, is_rewrite FROM taken ORDER BY n;

-- name: rewrites
SELECT DISTINCT object FROM rehearsal.commands WHERE is_rewrite;

-- name: tables
-- reads: how often this transaction has read the table as a whole.
SELECT c.oid::bigint, c.relname::text AS name, coalesce(s.seq_scan, 0) AS reads,
       (SELECT array_agg(i.indexrelid::bigint || ':' || pg_relation_filenode(i.indexrelid))
          FROM pg_index i WHERE i.indrelid = c.oid) AS indexes
  FROM pg_class c LEFT JOIN pg_stat_xact_user_tables s ON s.relid = c.oid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'hooksaga_migrations';

-- name: locks
-- A transaction keeps its locks until its end.
SELECT relation::bigint AS oid, mode FROM pg_locks
 WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: offers
-- What the code of a version may rely on. Without it, statements of that version fail or become slow.
SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) AS what
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'function ' || p.oid::regprocedure || ' returns ' || pg_get_function_result(p.oid)
  FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'argument ' || name || ' of function ' || p.proname
  FROM pg_proc p CROSS JOIN unnest(p.proargnames) AS name WHERE p.pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'value ' || e.enumlabel || ' of type ' || e.enumtypid::regtype FROM pg_enum e
UNION ALL
SELECT 'index ' || c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'i'
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || t.tgrelid::regclass FROM pg_trigger t WHERE NOT t.tgisinternal
UNION ALL
SELECT 'right to ' || a.privilege_type || ' on ' || c.relname || ' for ' || a.grantee::regrole
  FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a
 WHERE c.relnamespace = 'public'::regnamespace AND a.grantee <> c.relowner AND a.grantee > 0
UNION ALL
SELECT 'right to ' || a.privilege_type || ' (' || t.attname || ') on ' || c.relname || ' for ' || a.grantee::regrole
  FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid CROSS JOIN aclexplode(t.attacl) AS a
 WHERE c.relnamespace = 'public'::regnamespace AND a.grantee <> c.relowner AND a.grantee > 0 AND NOT t.attisdropped
UNION ALL
SELECT 'right to EXECUTE ' || p.proname || ' for ' || a.grantee::regrole
  FROM pg_proc p CROSS JOIN aclexplode(p.proacl) AS a
 WHERE p.pronamespace = 'public'::regnamespace AND a.grantee <> p.proowner AND a.grantee > 0;

-- name: demands
-- What the rows of a version must meet. columns: those that it concerns, of the table.
SELECT 'column ' || c.relname || '.' || a.attname || ' must be given' AS what, c.relname::text AS table_name,
       '{}'::text[] AS columns
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
   AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''
UNION ALL
SELECT 'constraint ' || k.conname || ' on ' || c.relname, c.relname,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey))
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
 WHERE c.relnamespace = 'public'::regnamespace AND k.contype IN ('c', 'f', 'x')
UNION ALL
SELECT 'unique index ' || i.indexrelid::regclass || ' on ' || c.relname, c.relname,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey))
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
 WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique;

-- name: target
-- This block and the next two are of the database that is to be migrated.
SELECT current_setting('server_version') AS version,
       to_regclass('public.hooksaga_migrations') IS NOT NULL AS has_migrations;

-- name: applied
SELECT name FROM hooksaga_migrations;

-- name: sizes
-- row_count: an estimate of the last vacuum; NULL before the first.
SELECT c.relname::text AS name, pg_total_relation_size(c.oid) AS bytes,
       CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END AS row_count
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r';
