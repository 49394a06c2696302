-- The attributes that an event has: those that its producer gave, and those that were extracted from its payload under
-- other names.
CREATE OR REPLACE FUNCTION attributes_of_event(given jsonb, extracted jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN extracted || given;
