-- Queries of `hooksaga migrate` besides the migrations themselves. The lock belongs to a transaction, not to a session:
-- a pooler shares sessions, and a killed process leaves no transaction lock behind.

-- name: take_lock
SELECT pg_try_advisory_xact_lock(%(key)s) AS taken, pg_backend_pid() AS pid;

-- name: lock_holder
-- The session that holds the lock of take_lock in this database.
SELECT l.pid
  FROM pg_locks l JOIN pg_database d ON d.oid = l.database
 WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database()
   AND l.classid::bigint = %(key)s::bigint >> 32 AND l.objid::bigint = %(key)s::bigint & 4294967295;

-- name: create_migrations_table
CREATE TABLE IF NOT EXISTS hooksaga_migrations (
    name text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: applied_migrations
SELECT name FROM hooksaga_migrations;

-- name: note_migration
INSERT INTO hooksaga_migrations (name) VALUES (%(name)s);

-- name: leave_bodies_unchecked
-- A function is loaded in its current version, and may refer to objects that a later file creates.
SET LOCAL check_function_bodies = off;

-- name: blocking_pids
-- The sessions that block session pid. A prepared transaction has no session, and counts as 0.
SELECT DISTINCT unnest(pg_blocking_pids(%(pid)s)) AS pid;

-- name: sessions
-- Facts about these sessions. The activity of other roles is visible to members of pg_monitor only.
SELECT pid, usename::text AS role, application_name, state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
       CASE WHEN state = 'active' THEN extract(epoch FROM clock_timestamp() - query_start)::float8 END AS query_seconds
  FROM pg_stat_activity WHERE pid = ANY (%(pids)s::int[]) ORDER BY xact_start NULLS LAST, pid;

-- name: prepared_transactions
SELECT gid, owner::text AS role, extract(epoch FROM clock_timestamp() - prepared)::float8 AS seconds
  FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared;

-- name: cancel
SELECT pg_cancel_backend(%(pid)s);

-- name: own_pid
SELECT pg_backend_pid() AS pid;

-- name: index_state
SELECT i.indisvalid AND i.indisready AND i.indislive AS is_valid
  FROM pg_index i WHERE i.indexrelid = to_regclass('public.' || quote_ident(%(name)s));

-- name: build_progress
SELECT phase, (100.0 * coalesce(nullif(blocks_done, 0), tuples_done)
               / nullif(CASE WHEN blocks_done > 0 THEN blocks_total ELSE tuples_total END, 0))::float8 AS percent
  FROM pg_stat_progress_create_index WHERE pid = %(pid)s;

-- name: roles
SELECT rolname::text AS name FROM pg_roles WHERE rolname = ANY (%(names)s::text[]) ORDER BY rolname;

-- name: iam_logins
-- The members of a group, by their own membership.
SELECT member::regrole::text AS name FROM pg_auth_members WHERE roleid = to_regrole(%(group)s);

-- name: database_name
-- A pooler may use another name for it.
SELECT current_database()::text AS name;

-- name: find_retention_function
SELECT to_regprocedure('give_retention_its_owner()') IS NOT NULL AS is_there;

-- name: give_retention_its_owner
SELECT give_retention_its_owner();

-- name: settable
-- The settings among these that the server knows and this user may set.
SELECT name FROM unnest(%(names)s::text[]) AS wanted (name)
 WHERE current_setting(name, true) IS NOT NULL AND has_parameter_privilege(name, 'SET');
