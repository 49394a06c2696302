-- The catalogue of event types. An entry says what the events of a type are, which attributes are extracted from
-- their payloads, and which schema they have to match. Events of other types need no entry. Entries are configuration:
-- events do not refer to them.
--
-- attributes: [{"name", "pointer", "kind"}]. schema, sample: the JSON text that was given.
CREATE TABLE event_types (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name varchar(100) NOT NULL UNIQUE,
    description varchar(2000) NOT NULL DEFAULT '',
    attributes jsonb NOT NULL DEFAULT '[]',
    schema json,
    on_mismatch varchar(10) NOT NULL DEFAULT 'reject',
    sample json,
    archived boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT name_is_valid CHECK (name ~ '^[A-Za-z0-9_.:/-]{1,100}$' AND name NOT LIKE 'hooksaga.%'),
    CONSTRAINT attributes_are_a_list CHECK (jsonb_typeof(attributes) = 'array'),
    CONSTRAINT on_mismatch_is_known CHECK (on_mismatch IN ('reject', 'warn')),
    CONSTRAINT schema_is_small CHECK (octet_length(schema::text) <= 65536)
);

-- One row. Processes that accept events keep the catalogue in memory. Each statement that stores events compares the
-- revision, so that none is stored by a catalogue that has changed. Random, so that the revisions of two databases are
-- never equal; all zeros until the first entry.
CREATE TABLE event_types_revision (
    is_only boolean PRIMARY KEY DEFAULT true,
    revision uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    CONSTRAINT has_one_row CHECK (is_only)
);

INSERT INTO event_types_revision DEFAULT VALUES;

-- load: functions/renew_event_types_revision.sql

CREATE TRIGGER renew_event_types_revision AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON event_types
    FOR EACH STATEMENT EXECUTE FUNCTION renew_event_types_revision();
