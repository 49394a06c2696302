-- Adds to the totals of the day what a batch has deleted, and notes the horizon that it applied. The batch holds
-- retention_state, so no two add at once.
CREATE OR REPLACE FUNCTION note_deleted(of_kind varchar, by_outcome jsonb, applied timestamptz) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, public AS $$
    INSERT INTO retention_days AS d (day, kind, outcome, deleted, horizon)
    SELECT (now() AT TIME ZONE 'UTC')::date, of_kind, o.key, o.value::bigint, applied
      FROM jsonb_each_text(by_outcome) AS o
     WHERE o.value::bigint > 0
     ORDER BY o.key
    ON CONFLICT (day, kind, outcome) DO UPDATE
       SET deleted = d.deleted + excluded.deleted, horizon = greatest(d.horizon, excluded.horizon)
$$;
