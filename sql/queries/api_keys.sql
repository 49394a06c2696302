-- name: check_api_keys
SELECT asked.hash, key.id, key.tenant_id, key.scopes
  FROM unnest(%(hashes)s::bytea[]) AS asked (hash) CROSS JOIN LATERAL check_api_key(asked.hash) AS key;

-- name: create_api_key
SELECT create_api_key(%(name)s, %(hash)s, %(last_four)s, %(tenant_id)s, %(scopes)s::text[]) AS id;

-- name: list_api_keys
SELECT id, name, last_four, tenant_id, scopes, created_at, revoked_at FROM list_api_keys();

-- name: revoke_api_key
SELECT revoke_api_key(%(id)s) AS revoked;
