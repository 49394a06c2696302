-- API keys and console sessions. Only hashes are stored, and no role reads these tables; access is through functions.

-- Keys of the HTTP API.
CREATE TABLE api_keys (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name varchar(100) NOT NULL,
    key_sha256 bytea NOT NULL UNIQUE,
    last_four varchar(4) NOT NULL,
    tenant_id varchar(100),
    scopes text[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    CONSTRAINT key_is_a_sha256 CHECK (octet_length(key_sha256) = 32),
    CONSTRAINT scopes_are_known CHECK (
        scopes <@ ARRAY['events:write', 'subscriptions:write', 'subscriptions:verify', 'events:erase',
                        'event-types:write', 'admin'])
);

-- load: functions/check_api_key.sql
-- load: functions/create_api_key.sql
-- load: functions/list_api_keys.sql
-- load: functions/revoke_api_key.sql

-- Single-use sign-in links of the console. A link of a deleted or revoked key is refused.
CREATE TABLE console_sign_ins (
    token_sha256 bytea PRIMARY KEY,
    key_id bigint NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT token_is_a_sha256 CHECK (octet_length(token_sha256) = 32)
);

-- load: functions/create_console_sign_in.sql
-- load: functions/use_console_sign_in.sql

-- Sessions of the console and the portal that were signed out early. A session is a sealed cookie, which a server
-- cannot revoke, so an ended session is recorded here until it would have expired.
CREATE TABLE ended_sessions (
    session_sha256 bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL,
    CONSTRAINT session_is_a_sha256 CHECK (octet_length(session_sha256) = 32)
);

-- load: functions/end_sessions.sql
-- load: functions/session_has_ended.sql
