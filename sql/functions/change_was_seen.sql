-- Whether a routing saw a change of a subscription. A change with a greater id than newest_change was made later. One
-- with a lower id was seen, unless its transaction was still in flight. A snapshot is meaningful only in its own
-- cluster: a change restored from a dump was seen, and is recognized by a snapshot that is later than the routing's,
-- which is impossible within one cluster (decision 32).
CREATE OR REPLACE FUNCTION change_was_seen(
    change_id bigint, changed_by xid8, changed_in pg_snapshot, newest_change bigint, snapshot pg_snapshot
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN change_id <= newest_change
   AND (pg_visible_in_snapshot(changed_by, snapshot) OR pg_snapshot_xmax(changed_in) > pg_snapshot_xmax(snapshot));
