-- Required settings of a session, whatever the defaults of its role, database and server.

-- part: settings_to_state
-- Not every owner may set session_replication_role, a server on Windows refuses client_connection_check_interval, and
-- servers before 17 know no transaction_timeout.
  FROM ROWS FROM (pg_catalog.unnest(%(names)s::pg_catalog.text[]), pg_catalog.unnest(%(values)s::pg_catalog.text[]))
       AS stated (name, value)
 WHERE pg_catalog.current_setting(name, true) IS NOT NULL
   AND (name <> 'session_replication_role' OR pg_catalog.has_parameter_privilege(name, 'SET'))
   AND (name <> 'client_connection_check_interval' OR pg_catalog.version() !~* 'visual c|msvc|mingw');

-- name: state_settings
-- Set until the transaction ends, for the owner, whose own defaults hooksaga must not change.
SELECT pg_catalog.set_config(name, value, true)
-- insert: settings_to_state

-- name: state_session_settings
-- Set until the session ends, which therefore must not be shared by a pooler.
SELECT pg_catalog.set_config(name, value, false)
-- insert: settings_to_state

-- name: wrong_settings
-- Settings that would change the meaning of statements or the format of results, or bypass guards.
SELECT name, pg_catalog.current_setting(name) AS value
  FROM (VALUES ('search_path', pg_catalog.current_schema() = 'public'),
               ('role', current_user = session_user),
               ('datestyle', pg_catalog.current_setting('datestyle') LIKE 'ISO%%'),
               ('intervalstyle', pg_catalog.current_setting('intervalstyle') = 'postgres'),
               ('extra_float_digits', pg_catalog.current_setting('extra_float_digits')::pg_catalog.int4 >= 1),
               ('array_nulls', pg_catalog.current_setting('array_nulls') = 'on'),
               ('standard_conforming_strings', pg_catalog.current_setting('standard_conforming_strings') = 'on'),
               ('transform_null_equals', pg_catalog.current_setting('transform_null_equals') = 'off'),
               ('exit_on_error', pg_catalog.current_setting('exit_on_error') = 'off'),
               ('session_replication_role', pg_catalog.current_setting('session_replication_role') = 'origin')
       ) AS needed (name, is_right)
 WHERE is_right IS NOT TRUE;

-- name: stated_settings
-- The settings of a role in this database.
SELECT pg_catalog.unnest(s.setconfig) AS setting
  FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase JOIN pg_roles r ON r.oid = s.setrole
 WHERE d.datname = current_database() AND r.rolname = %(role)s;
