-- Rows whose values are sealed again when the key is rotated, batch by batch.

-- name: next_secrets
-- A batch of the stored secrets, including expired ones, by id.
SELECT id, subscription_id, secret FROM subscription_secrets WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s;

-- name: replace_secrets
-- Writes only if the secret is unchanged: a rotation or deletion made meanwhile wins. A row that another session has
-- locked stays unchanged, and is in the answer as not written.
WITH wanted AS MATERIALIZED (
    SELECT n.id, n.old, n.new FROM unnest(%(ids)s::bigint[], %(old)s::text[], %(new)s::text[]) AS n (id, old, new)
), fresh AS MATERIALIZED (
    SELECT k.id, w.new FROM wanted w JOIN subscription_secrets k ON k.id = w.id AND k.secret = w.old
     ORDER BY k.id FOR NO KEY UPDATE OF k SKIP LOCKED
), written AS (
    UPDATE subscription_secrets k SET secret = fresh.new FROM fresh WHERE k.id = fresh.id RETURNING k.id
)
SELECT k.subscription_id, k.id IN (SELECT id FROM written) AS written
  FROM wanted w JOIN subscription_secrets k ON k.id = w.id AND k.secret = w.old;

-- name: next_headers
-- A batch of the subscriptions with custom headers, including deleted ones, by id; all, or only those with a value in
-- clear.
SELECT id, headers::text AS headers FROM subscriptions
 WHERE headers <> '{}' AND id > %(after_id)s
   AND (NOT %(only_clear)s OR headers @? '$.* ? (@.type() == "string")')
 ORDER BY id LIMIT %(limit)s;

-- name: replace_headers
-- Writes only if the headers are unchanged: a change made meanwhile stays, and is already sealed. A row that another
-- session has locked stays unchanged, and is in the answer as not written.
WITH wanted AS MATERIALIZED (
    SELECT n.id, n.old::jsonb AS old, n.new::jsonb AS new
      FROM unnest(%(ids)s::bigint[], %(old)s::text[], %(new)s::text[]) AS n (id, old, new)
), fresh AS MATERIALIZED (
    SELECT s.id, w.new FROM wanted w JOIN subscriptions s ON s.id = w.id AND s.headers = w.old
     ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
), written AS (
    UPDATE subscriptions s SET headers = fresh.new FROM fresh WHERE s.id = fresh.id RETURNING s.id
)
SELECT s.id AS subscription_id, s.id IN (SELECT id FROM written) AS written
  FROM wanted w JOIN subscriptions s ON s.id = w.id AND s.headers = w.old;
