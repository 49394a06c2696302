-- name: next_secrets
-- A batch of all stored secrets, expired ones too, by id.
SELECT id, subscription_id, secret FROM subscription_secrets WHERE id > %(after_id)s ORDER BY id LIMIT %(limit)s;

-- name: replace_secrets
-- Only where it is still the same: whoever rotated or deleted it meanwhile has the last word.
WITH fresh AS MATERIALIZED (
    SELECT k.id, n.new FROM unnest(%(ids)s::bigint[], %(old)s::text[], %(new)s::text[]) AS n (id, old, new)
      JOIN subscription_secrets k ON k.id = n.id AND k.secret = n.old
     ORDER BY k.id FOR UPDATE OF k
)
UPDATE subscription_secrets k SET secret = fresh.new FROM fresh WHERE k.id = fresh.id RETURNING k.id;
