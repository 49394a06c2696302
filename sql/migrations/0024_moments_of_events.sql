-- A producer that writes events in its own transaction may say when they were: not in a year that programs cannot hold,
-- as milliseconds taken for seconds would be. One such event would stop every stage that reads it.
ALTER TABLE events ADD CONSTRAINT created_at_is_representable
    CHECK (created_at >= '0001-01-02 00:00Z' AND created_at < '9999-12-31 00:00Z') NOT VALID;
