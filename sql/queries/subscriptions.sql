-- part: subscription
       id, tenant_id, event_type, event_types, filter::text AS filter, callback_url, pending_callback_url, description, active,
       verified, eligible_since,
       max_retry_limit, base_delay_seconds, timeout_seconds, max_in_flight, rate_limit_count, rate_limit_seconds, ordered,
       max_wait_seconds, circuit_breaker, format, paused_at, headers, created_at, updated_at, deleted_at, verified_by_key_id,
       verified_reason

-- name: create_subscription
-- Inserts the subscription and its secret in one statement: neither is ever visible without the other.
WITH created AS (
    INSERT INTO subscriptions (tenant_id, event_types, filter, filter_path, callback_url, description, active, max_retry_limit,
                               base_delay_seconds, timeout_seconds, max_in_flight, rate_limit_count,
                               rate_limit_seconds, ordered, max_wait_seconds, circuit_breaker, format, headers,
                               verified,
                               verified_by_key_id, verified_reason)
    VALUES (%(tenant_id)s, %(event_types)s::varchar[], %(filter)s::json, %(filter_path)s::jsonpath, %(callback_url)s, %(description)s, %(active)s, %(max_retry_limit)s,
            %(base_delay_seconds)s, %(timeout_seconds)s, %(max_in_flight)s, %(rate_limit_count)s,
            %(rate_limit_seconds)s, %(ordered)s, %(max_wait_seconds)s, %(circuit_breaker)s, %(format)s,
            %(headers)s::jsonb,
            %(verified)s, %(verified_by_key_id)s, %(verified_reason)s)
    RETURNING
           -- insert: subscription
), kept AS (
    INSERT INTO subscription_secrets (subscription_id, secret) SELECT id, %(secret)s FROM created
)
SELECT * FROM created;

-- name: list_subscriptions
-- event_type: the subscriptions that receive this type, by its name or by a pattern.
SELECT
       -- insert: subscription
  FROM subscriptions
 WHERE deleted_at IS NULL
   AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
   AND (%(event_type)s::text IS NULL OR event_types && patterns_of_type(%(event_type)s::varchar))
   AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: show_subscription
SELECT
       -- insert: subscription
  FROM subscriptions
 WHERE id = %(id)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s);

-- name: lock_subscription
SELECT
       -- insert: subscription
  FROM subscriptions
 WHERE id = %(id)s AND deleted_at IS NULL AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
   FOR NO KEY UPDATE;

-- name: update_subscription
UPDATE subscriptions
   SET event_types = %(event_types)s::varchar[], filter = %(filter)s::json, filter_path = %(filter_path)s::jsonpath,
       callback_url = %(callback_url)s,
       pending_callback_url = %(pending_callback_url)s, description = %(description)s, active = %(active)s,
       max_retry_limit = %(max_retry_limit)s, base_delay_seconds = %(base_delay_seconds)s,
       timeout_seconds = %(timeout_seconds)s, max_in_flight = %(max_in_flight)s,
       rate_limit_count = %(rate_limit_count)s, rate_limit_seconds = %(rate_limit_seconds)s, ordered = %(ordered)s,
       max_wait_seconds = %(max_wait_seconds)s, circuit_breaker = %(circuit_breaker)s,
       format = %(format)s, headers = %(headers)s::jsonb
 WHERE id = %(id)s
RETURNING
       -- insert: subscription

-- name: deactivate_subscription
UPDATE subscriptions SET active = false, deleted_at = coalesce(deleted_at, clock_timestamp())
 WHERE id = %(id)s AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
RETURNING id;

-- name: current_secrets
-- With the database's time, for dating the request that they sign.
SELECT secret, extract(epoch FROM clock_timestamp())::bigint AS read_at FROM subscription_secrets
 WHERE subscription_id = %(id)s AND (expires_at IS NULL OR expires_at > now()) ORDER BY id DESC;

-- name: mark_verified
-- Only the address that answered the challenge becomes verified: if it changed meanwhile, no row matches.
UPDATE subscriptions 
   SET callback_url = %(url)s, pending_callback_url = NULL, verified = true, verified_by_key_id = NULL,
       verified_reason = NULL
 WHERE id = %(id)s AND deleted_at IS NULL
   AND coalesce(pending_callback_url, callback_url) = %(url)s
RETURNING
       -- insert: subscription

-- name: retire_secrets
-- The current secret signs beside the new one until it expires. Without overlap, earlier secrets end with it.
UPDATE subscription_secrets SET expires_at = clock_timestamp() + make_interval(secs => %(overlap_seconds)s)
 WHERE subscription_id = %(id)s AND (expires_at IS NULL OR %(overlap_seconds)s = 0) RETURNING id;

-- name: count_secrets
SELECT count(*) AS secrets FROM subscription_secrets WHERE subscription_id = %(id)s;

-- name: add_secret
INSERT INTO subscription_secrets (subscription_id, secret) VALUES (%(id)s, %(secret)s) RETURNING id;

-- name: delete_expired_secrets
DELETE FROM subscription_secrets WHERE subscription_id = %(id)s AND expires_at <= clock_timestamp() RETURNING id;
