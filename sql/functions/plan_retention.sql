-- Notes how long each kind of row is kept now, for retention_lag; null: for ever. The caller applies these ages.
CREATE OR REPLACE FUNCTION plan_retention(
    deliveries interval, dead_letters interval, payloads interval, events interval
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE retention_progress p SET keep = w.keep
      FROM (SELECT r.kind, a.keep
              FROM (VALUES ('deliveries', deliveries), ('dead_letters', dead_letters), ('payloads', payloads),
                           ('events', events)) AS a (kind, keep)
              JOIN retention_progress r ON r.kind = a.kind AND r.keep IS DISTINCT FROM a.keep
             ORDER BY r.kind FOR NO KEY UPDATE OF r SKIP LOCKED) AS w
     WHERE p.kind = w.kind
$$;
