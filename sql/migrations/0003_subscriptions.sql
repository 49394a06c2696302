-- Who gets which events, and where. Configuration only.
CREATE TABLE subscriptions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id varchar(100) NOT NULL DEFAULT 'default',
    event_type varchar(100) NOT NULL,
    callback_url varchar(500) NOT NULL,
    pending_callback_url varchar(500),
    description varchar(500) NOT NULL DEFAULT '',
    active boolean NOT NULL DEFAULT true,
    verified boolean NOT NULL DEFAULT false,
    eligible_since timestamptz,
    eligible_after_event bigint,
    eligible_snapshot pg_snapshot,
    max_retry_limit integer,
    base_delay_seconds double precision,
    timeout_seconds double precision,
    headers jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    CONSTRAINT callback_url_is_https CHECK (callback_url LIKE 'https://_%'),
    CONSTRAINT pending_callback_url_is_https CHECK (pending_callback_url LIKE 'https://_%'),
    CONSTRAINT event_type_is_valid CHECK (event_type ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT tenant_id_is_valid CHECK (tenant_id ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
    CONSTRAINT max_retry_limit_in_range CHECK (max_retry_limit BETWEEN 1 AND 50),
    CONSTRAINT base_delay_in_range CHECK (base_delay_seconds > 0 AND base_delay_seconds <= 3600),
    CONSTRAINT timeout_in_range CHECK (timeout_seconds BETWEEN 1 AND 30),
    CONSTRAINT headers_are_an_object CHECK (jsonb_typeof(headers) = 'object')
);

CREATE INDEX idx_sub_event_type ON subscriptions (event_type);
CREATE INDEX idx_sub_active ON subscriptions (active);

-- What routing asks: the subscriptions of one tenant that take one event type now.
CREATE INDEX idx_sub_routing ON subscriptions (tenant_id, event_type, id) INCLUDE (eligible_after_event)
    WHERE active AND verified AND deleted_at IS NULL;

-- The snapshot can be too wide for the index of routing, so it is looked up by itself, for the few events that are not
-- later by their ids. A function at the lowest cost, because a subquery in its place makes the planner leave the index.
CREATE FUNCTION eligible_snapshot_of(subscription_id bigint) RETURNS pg_snapshot
LANGUAGE sql STABLE PARALLEL SAFE COST 1
BEGIN ATOMIC
    SELECT s.eligible_snapshot FROM subscriptions s WHERE s.id = subscription_id;
END;
-- headers: {"x-token": {"sealed": "<ciphertext>"}}, by name. Text in place of the inner object is a value in clear, which
-- `hooksaga secrets reseal` seals. Its walk, by id, past the many that have none:
CREATE INDEX idx_sub_headers ON subscriptions (id) WHERE headers <> '{}';

-- Signing secrets stand apart, so that only two roles can read them. Ciphertext; the newest row without
-- expires_at is the current one, older ones sign beside it until they expire.
CREATE TABLE subscription_secrets (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id bigint NOT NULL REFERENCES subscriptions (id),
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz
);

CREATE INDEX idx_secret_subscription ON subscription_secrets (subscription_id, id);
CREATE UNIQUE INDEX uniq_secret_current ON subscription_secrets (subscription_id) WHERE expires_at IS NULL;

-- A subscription gets the events that are accepted after it last became active and verified. eligible_after_event and
-- eligible_snapshot are that moment for accepted_after(); eligible_since is the same moment for people. The snapshot
-- is taken before the change commits, so an event that is accepted after the commit can never be in it.
-- SECURITY DEFINER: roles that change subscriptions need no right to read events.
--
-- verified always speaks of callback_url: a new address either waits in pending_callback_url until it is verified, or
-- replaces an address that was never verified.
CREATE FUNCTION keep_subscription_facts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
    is_eligible boolean := NEW.active AND NEW.verified AND NEW.deleted_at IS NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.callback_url <> OLD.callback_url AND NEW.verified
            AND NEW.callback_url IS DISTINCT FROM OLD.pending_callback_url THEN
            RAISE EXCEPTION 'subscription %: a verified callback_url is replaced by its pending one only', OLD.id
                USING ERRCODE = 'HS001';
        END IF;
        NEW.updated_at := clock_timestamp();
    END IF;
    IF NOT is_eligible THEN
        SELECT NULL, NULL, NULL INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    ELSIF TG_OP = 'UPDATE' AND OLD.eligible_after_event IS NOT NULL THEN
        SELECT OLD.eligible_since, OLD.eligible_after_event, OLD.eligible_snapshot
          INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    ELSE
        SELECT clock_timestamp(), coalesce((SELECT max(id) FROM events), 0), pg_current_snapshot()
          INTO NEW.eligible_since, NEW.eligible_after_event, NEW.eligible_snapshot;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER keep_subscription_facts BEFORE INSERT OR UPDATE ON subscriptions
    FOR EACH ROW EXECUTE FUNCTION keep_subscription_facts();
