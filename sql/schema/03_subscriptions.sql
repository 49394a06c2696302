-- Which endpoint receives which events. Configuration only. headers: {"x-token": {"sealed": "<ciphertext>"}}, by
-- name. A plain string in place of the inner object is an unsealed value, which `hooksaga secrets reseal` seals.
-- verified_by_key_id, verified_reason: the API key that vouched for callback_url at creation, and why; null if the
-- endpoint answered a challenge.
-- format: what a delivery carries, the payload alone or a CloudEvent in one of its two modes.
-- filter: the condition on the attributes of events, as it was given; null for all events of its types. filter_path: the
-- same, compiled by shared/hooksaga/core/filters.py.
-- event_types: exact types, prefixes such as `invoice.*`, or `*`. event_type: the type, if it is one exact type.

-- load: functions/are_event_types.sql

CREATE TABLE subscriptions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id varchar(100) NOT NULL DEFAULT 'default',
    event_types varchar(100)[] NOT NULL,
    event_type varchar(100) GENERATED ALWAYS AS (
        CASE WHEN cardinality(event_types) = 1 AND event_types[1] NOT LIKE '%*' THEN event_types[1] END) STORED,
    filter json,
    filter_path jsonpath,
    callback_url varchar(500) NOT NULL,
    pending_callback_url varchar(500),
    description varchar(500) NOT NULL DEFAULT '',
    active boolean NOT NULL DEFAULT true,
    verified boolean NOT NULL DEFAULT false,
    verified_by_key_id bigint,
    verified_reason varchar(500),
    eligible_since timestamptz,
    eligible_after_event bigint,
    eligible_snapshot pg_snapshot,
    max_retry_limit integer,
    base_delay_seconds double precision,
    timeout_seconds double precision,
    headers jsonb NOT NULL DEFAULT '{}',
    max_in_flight integer,
    rate_limit_count integer,
    rate_limit_seconds double precision,
    ordered boolean NOT NULL DEFAULT false,
    max_wait_seconds double precision,
    circuit_breaker boolean NOT NULL DEFAULT true,
    format varchar(30) NOT NULL DEFAULT 'payload',
    paused_at timestamptz,
    resumed_at timestamptz,
    discard_through bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    CONSTRAINT callback_url_is_https CHECK (callback_url LIKE 'https://_%'),
    CONSTRAINT pending_callback_url_is_https CHECK (pending_callback_url LIKE 'https://_%'),
    CONSTRAINT event_types_are_valid CHECK (are_event_types(event_types)),
    CONSTRAINT filter_is_compiled CHECK ((filter IS NULL) = (filter_path IS NULL)),
    CONSTRAINT filter_is_short CHECK (length(filter::text) <= 8192),
    CONSTRAINT tenant_id_is_valid CHECK (tenant_id ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT max_retry_limit_in_range CHECK (max_retry_limit BETWEEN 1 AND 50),
    CONSTRAINT base_delay_in_range CHECK (base_delay_seconds > 0 AND base_delay_seconds <= 3600),
    CONSTRAINT timeout_in_range CHECK (timeout_seconds BETWEEN 1 AND 30),
    CONSTRAINT max_in_flight_in_range CHECK (max_in_flight BETWEEN 1 AND 1000),
    CONSTRAINT rate_limit_in_range CHECK (
        rate_limit_count BETWEEN 1 AND 100000 AND rate_limit_seconds BETWEEN 1 AND 86400),
    CONSTRAINT rate_limit_is_whole CHECK ((rate_limit_count IS NULL) = (rate_limit_seconds IS NULL)),
    CONSTRAINT max_wait_in_range CHECK (max_wait_seconds BETWEEN 60 AND 2592000),
    CONSTRAINT format_is_known CHECK (format IN ('payload', 'cloudevents-structured', 'cloudevents-binary')),
    CONSTRAINT headers_are_an_object CHECK (jsonb_typeof(headers) = 'object')
);

CREATE INDEX idx_sub_event_type ON subscriptions (event_type);
CREATE INDEX idx_sub_event_types ON subscriptions USING gin (event_types);
CREATE INDEX idx_sub_active ON subscriptions (active);

-- Lists of a tenant's subscriptions, page by page.
CREATE INDEX idx_sub_tenant ON subscriptions (tenant_id, id);

-- Paused subscriptions are few, and a view counts them.
CREATE INDEX idx_sub_paused ON subscriptions (id) WHERE paused_at IS NOT NULL AND deleted_at IS NULL;

-- Resealing headers: skips subscriptions without any.
CREATE INDEX idx_sub_headers ON subscriptions (id) WHERE headers <> '{}';

-- load: functions/eligible_snapshot_of.sql
-- load: functions/filter_of.sql
-- load: functions/keep_subscription_facts.sql

CREATE TRIGGER keep_subscription_facts BEFORE INSERT OR UPDATE ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION keep_subscription_facts();

-- Routing: the event types of the eligible subscriptions of a tenant, one per row. Written by a trigger only, in the
-- transaction that changes the subscription. The columns after the key are copies, so that routing reads the index alone.
CREATE TABLE subscription_patterns (
    tenant_id varchar(100) NOT NULL,
    pattern varchar(100) NOT NULL,
    subscription_id bigint NOT NULL,
    eligible_after_event bigint NOT NULL,
    ordered boolean NOT NULL,
    filtered boolean NOT NULL,
    CONSTRAINT idx_sub_routing PRIMARY KEY (tenant_id, pattern, subscription_id)
        INCLUDE (eligible_after_event, ordered, filtered)
);

-- The same for all subscriptions, and for every event type that they ever had: those that matched an event once, and
-- those that nearly did. Rows are never removed.
CREATE TABLE subscription_pattern_history (
    tenant_id varchar(100) NOT NULL,
    pattern varchar(100) NOT NULL,
    subscription_id bigint NOT NULL,
    PRIMARY KEY (tenant_id, pattern, subscription_id)
);

-- load: functions/matching_subscriptions.sql
-- load: functions/keep_subscription_patterns.sql

CREATE TRIGGER keep_patterns_of_new_subscription AFTER INSERT ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION keep_subscription_patterns();

CREATE TRIGGER keep_patterns_of_changed_subscription AFTER UPDATE ON subscriptions
    FOR EACH ROW WHEN (
        (NEW.event_types, NEW.eligible_after_event, NEW.ordered, NEW.filter IS NULL)
        IS DISTINCT FROM
        (OLD.event_types, OLD.eligible_after_event, OLD.ordered, OLD.filter IS NULL)
    )
    EXECUTE FUNCTION keep_subscription_patterns();

-- Signing secrets, in a table of their own, so that only two roles can read them. Ciphertext. The newest row without
-- expires_at is the current secret; older ones also sign until they expire.
CREATE TABLE subscription_secrets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions (id),
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
);

CREATE INDEX idx_secret_subscription ON subscription_secrets (subscription_id, id);
CREATE UNIQUE INDEX uniq_secret_current ON subscription_secrets (subscription_id) WHERE expires_at IS NULL;
