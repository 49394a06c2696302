-- name: count_other_connections
-- Counts connections of other hooksaga processes to this database.
SELECT count(*) AS connections FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'hooksaga %%';
