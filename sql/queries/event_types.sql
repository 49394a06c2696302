-- part: event_type
       id, name, description, attributes::text AS attributes, schema::text AS schema, on_mismatch, sample::text AS sample,
       archived, created_at, updated_at

-- name: known_event_types
-- What ingest keeps in memory, or nothing of it when it has this revision. The revision is read by the same snapshot.
SELECT r.revision, t.name, t.attributes::text AS attributes, t.schema::text AS schema, t.on_mismatch, t.archived
  FROM event_types_revision r LEFT JOIN event_types t ON r.revision <> %(known)s::uuid;

-- name: other_event_types
-- How much there is beside one entry.
SELECT count(*) AS entries, coalesce(sum(octet_length(schema::text)), 0)::bigint AS schema_bytes
  FROM event_types
 WHERE name <> %(name)s;

-- name: put_event_type
-- created: the entry is new.
WITH present AS (
    SELECT id FROM event_types WHERE name = %(name)s
), put AS (
    INSERT INTO event_types (name, description, attributes, schema, on_mismatch, sample, archived)
    VALUES (%(name)s, %(description)s, %(attributes)s::jsonb, %(schema)s::json, %(on_mismatch)s, %(sample)s::json,
            %(archived)s)
    ON CONFLICT (name) DO UPDATE
       SET description = excluded.description, attributes = excluded.attributes, schema = excluded.schema,
           on_mismatch = excluded.on_mismatch, sample = excluded.sample, archived = excluded.archived, updated_at = now()
    RETURNING
           -- insert: event_type
)
SELECT put.*, NOT EXISTS (SELECT FROM present) AS created FROM put;

-- name: show_event_type
SELECT
       -- insert: event_type
  FROM event_types WHERE name = %(name)s;

-- name: list_event_types
SELECT
       -- insert: event_type
  FROM event_types
 WHERE (%(archived)s::boolean IS NULL OR archived = %(archived)s)
   AND (%(before_id)s::bigint IS NULL OR id < %(before_id)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: name_event_types
-- For forms: the types that take events.
SELECT name, description FROM event_types WHERE NOT archived ORDER BY name LIMIT %(limit)s;

-- name: delete_event_type
DELETE FROM event_types WHERE name = %(name)s RETURNING id;

-- name: sample_of_type
SELECT sample::text AS sample FROM event_types WHERE name = %(name)s AND sample IS NOT NULL;
