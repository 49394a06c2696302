-- Whether a routing saw a change of a subscription. One with a greater id than the newest seen was made later. One with
-- a lower id was seen, unless its transaction was still in flight. A snapshot tells that only about transactions of its
-- own cluster: a change that was restored from a dump has numbers of another one, and was seen. Such a change knows a
-- later transaction than the routing does, which within one cluster is impossible (decision 32).
CREATE OR REPLACE FUNCTION change_was_seen(
    change_id bigint, changed_by xid8, changed_in pg_snapshot, newest_change bigint, snapshot pg_snapshot
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN change_id <= newest_change
   AND (pg_visible_in_snapshot(changed_by, snapshot) OR pg_snapshot_xmax(changed_in) > pg_snapshot_xmax(snapshot));
