-- What `hooksaga doctor` judges of a database: facts only, all of them open to every role but the first block's
-- migrations. What they should be is in sql/README.md and in the migrations.

-- name: applied_migrations
SELECT name FROM hooksaga_migrations ORDER BY name;

-- name: server
SELECT current_setting('server_version_num')::int AS version_number, current_setting('server_version') AS version,
       pg_is_in_recovery() AS is_standby, current_setting('default_transaction_read_only') = 'on' AS is_read_only,
       current_setting('session_replication_role') AS triggers_for,
       extract(epoch FROM clock_timestamp())::float8 AS now_seconds,
       has_schema_privilege('public', 'public', 'CREATE') AS public_may_create;

-- name: roles
SELECT rolname::text AS name, rolcanlogin AS logs_in,
       rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS has_powers,
       coalesce(rolconfig, '{}') AS settings,
       (SELECT coalesce(array_agg(g.rolname::text ORDER BY g.rolname), '{}')
          FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid) AS member_of,
       (SELECT coalesce(array_agg(u.rolname::text ORDER BY u.rolname), '{}')
          FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member
         WHERE m.roleid = r.oid AND (m.set_option OR m.inherit_option)) AS used_by
  FROM pg_roles r WHERE rolname = ANY (%(roles)s::text[]) ORDER BY rolname;

-- name: table_rights
SELECT c.relname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right
  FROM pg_class c CROSS JOIN aclexplode(c.relacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE c.relnamespace = 'public'::regnamespace AND c.relowner <> a.grantee AND c.relkind IN ('r', 'p', 'v', 'm');

-- name: column_rights
SELECT c.relname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right,
       array_agg(t.attname::text ORDER BY t.attname) AS columns
  FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid
 CROSS JOIN aclexplode(t.attacl) AS a LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE c.relnamespace = 'public'::regnamespace AND NOT t.attisdropped
 GROUP BY 1, 2, 3;

-- name: function_rights
SELECT p.proname::text AS object, coalesce(r.rolname::text, 'PUBLIC') AS role, a.privilege_type AS right
  FROM pg_proc p CROSS JOIN aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> a.grantee;

-- name: triggers
SELECT c.relname::text AS object, t.tgname::text AS name, t.tgenabled::text AS enabled
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal;

-- name: owners
-- Who owns the tables, and the one function that must be owned by another.
SELECT (SELECT array_agg(DISTINCT pg_get_userbyid(relowner)::text) FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') AS of_tables,
       (SELECT pg_get_userbyid(proowner)::text FROM pg_proc
         WHERE pronamespace = 'public'::regnamespace AND proname = 'prune_finished') AS of_pruning;
