-- Rows whose values are sealed again when the key is rotated, batch by batch.

-- name: next_secrets
-- A batch of the stored secrets, including expired ones, by id.
SELECT id, subscription_id, secret FROM subscription_secrets WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s;

-- name: replace_secrets
-- Writes only if the secret is unchanged: a rotation or deletion made meanwhile wins.
WITH fresh AS MATERIALIZED (
    SELECT k.id, n.new FROM unnest(%(ids)s::bigint[], %(old)s::text[], %(new)s::text[]) AS n (id, old, new)
      JOIN subscription_secrets k ON k.id = n.id AND k.secret = n.old
     ORDER BY k.id FOR NO KEY UPDATE OF k
)
UPDATE subscription_secrets k SET secret = fresh.new FROM fresh WHERE k.id = fresh.id RETURNING k.id;

-- name: next_headers
-- A batch of the subscriptions with custom headers, including deleted ones, by id; all, or only those with a value in
-- clear.
SELECT id, headers::text AS headers FROM subscriptions
 WHERE headers <> '{}' AND id > %(after_id)s
   AND (NOT %(only_clear)s OR headers @? '$.* ? (@.type() == "string")')
 ORDER BY id LIMIT %(limit)s;

-- name: replace_headers
-- Writes only if the headers are unchanged: a change made meanwhile stays, and is already sealed.
WITH fresh AS MATERIALIZED (
    SELECT s.id, n.new FROM unnest(%(ids)s::bigint[], %(old)s::text[], %(new)s::text[]) AS n (id, old, new)
      JOIN subscriptions s ON s.id = n.id AND s.headers = n.old::jsonb
     ORDER BY s.id FOR NO KEY UPDATE OF s
)
UPDATE subscriptions s SET headers = fresh.new::jsonb FROM fresh WHERE s.id = fresh.id RETURNING s.id;
