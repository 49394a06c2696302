-- Facts of a database for `hooksaga doctor`. Every role may read them, except the migrations of the first block. The
-- expected values are in sql/README.md and in the migrations.

-- name: applied_migrations
SELECT name FROM hooksaga_migrations ORDER BY name;

-- name: server
SELECT current_setting('server_version_num')::int AS version_number, current_setting('server_version') AS version,
       pg_is_in_recovery() AS is_standby, current_setting('default_transaction_read_only') = 'on' AS is_read_only,
       (SELECT source FROM pg_settings WHERE name = 'default_transaction_read_only') AS read_only_by,
       current_setting('session_replication_role') AS triggers_for,
       extract(epoch FROM clock_timestamp())::float8 AS now_seconds,
       has_schema_privilege('public', 'public', 'CREATE') AS public_may_create;

-- name: roles
SELECT rolname::text AS name, rolcanlogin AS logs_in,
       rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS has_powers,
       -- Of several the strongest: of the role in this database, of the role, of the database, of all.
       (SELECT coalesce(array_agg(setting), '{}')
          FROM (SELECT DISTINCT ON (lower(split_part(one, '=', 1))) one AS setting
                  FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase
                 CROSS JOIN unnest(s.setconfig) AS one
                 WHERE s.setrole IN (0, r.oid) AND (s.setdatabase = 0 OR d.datname = current_database())
                 ORDER BY lower(split_part(one, '=', 1)), s.setrole = 0, s.setdatabase = 0) AS strongest) AS settings,
       (SELECT coalesce(array_agg(g.rolname::text ORDER BY g.rolname), '{}')
          FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid) AS member_of,
       (SELECT coalesce(array_agg(u.rolname::text ORDER BY u.rolname), '{}')
          FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member
         -- Before PostgreSQL 16 a membership has no options.
         WHERE m.roleid = r.oid AND NOT to_jsonb(m) @> '{"set_option": false, "inherit_option": false}') AS used_by
  FROM pg_roles r WHERE rolname = ANY (%(roles)s::text[]) ORDER BY rolname;

-- name: limits
-- Limits at which all requests fail with 503. A slot keeps all log that its reader has not fetched, until the disk is
-- full; with synchronous standbys configured and none connected, each COMMIT waits for one.
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0) AS connection_limit,
       current_setting('synchronous_standby_names') AS synchronous_standbys,
       (SELECT count(*) FROM pg_stat_replication) AS standbys;

-- name: idle_slots
-- Not checked on a standby, whose log is its primary's.
SELECT slot_name::text AS name, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8 AS kept_bytes
  FROM pg_replication_slots
 WHERE NOT active AND restart_lsn IS NOT NULL AND NOT pg_is_in_recovery()
 ORDER BY 3 DESC;

-- name: table_rights
SELECT c.relname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right
  FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE c.relnamespace = 'public'::regnamespace AND c.relowner <> a.grantee AND c.relkind IN ('r', 'p', 'v', 'm', 'S');

-- name: column_rights
SELECT c.relname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right,
       array_agg(t.attname::text ORDER BY t.attname) AS columns
  FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid
 CROSS JOIN aclexplode(t.attacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE c.relnamespace = 'public'::regnamespace AND NOT t.attisdropped
 GROUP BY 1, 2, 3;

-- name: function_rights
-- Without uuidv7, which only older servers have here.
SELECT p.proname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right
  FROM pg_proc p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> a.grantee AND p.proname <> 'uuidv7';

-- name: triggers
SELECT c.relname::text AS object, t.tgname::text AS name, t.tgenabled::text AS enabled
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal;

-- name: owners
-- The owners of the tables, and of the functions that must have another owner.
SELECT (SELECT array_agg(DISTINCT pg_get_userbyid(relowner)::text) FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') AS of_tables,
       (SELECT array_agg(DISTINCT pg_get_userbyid(proowner)::text) FROM pg_proc
         WHERE pronamespace = 'public'::regnamespace AND proname = ANY (%(of_retention)s::text[])) AS of_pruning;

-- name: surroundings
-- Facts of a managed server, as the owner sees it. On a migrated database and on an empty one.
SELECT current_user::text AS owner, current_database()::text AS database, pg_encoding_to_char(d.encoding) AS encoding,
       CASE WHEN d.datcollversion <> pg_database_collation_actual_version(d.oid)
            THEN d.datcollversion || ' to ' || pg_database_collation_actual_version(d.oid) END AS collation_changed,
       least(current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                 - coalesce(current_setting('reserved_connections', true)::int, 0),
             nullif(d.datconnlimit, -1)) AS connection_limit,
       ARRAY(SELECT name FROM pg_settings WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off') AS off,
       -- reset_val: this transaction has set its own.
       (SELECT reset_val || unit FROM pg_settings
         WHERE name = 'statement_timeout' AND reset_val::int BETWEEN 1 AND 3600000) AS small_statement_timeout
  FROM pg_database d WHERE d.datname = current_database();

-- name: limited_roles
SELECT rolname::text AS name, rolconnlimit AS connections FROM pg_roles
 WHERE rolname = ANY (%(roles)s::text[]) AND rolconnlimit BETWEEN 0 AND %(needed)s - 1 ORDER BY rolname;

-- name: has_migrations
SELECT to_regclass('public.hooksaga_migrations') IS NOT NULL AS answer;

-- name: try_to_own
-- What later migrations need of an owner who is not a superuser: the tables, new objects, and the role that owns the
-- functions of retention.
CREATE TABLE public.tried_by_doctor (n integer);
DO $$
DECLARE
    foreign_table text := (SELECT min(relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace
                              AND relkind = 'r' AND NOT pg_has_role(current_user, relowner, 'USAGE'));
BEGIN
    IF foreign_table IS NOT NULL THEN
        RAISE EXCEPTION 'must be owner of table %', foreign_table USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT retention_operator TO %I', current_user);
    END IF;
END $$;
