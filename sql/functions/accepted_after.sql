-- Whether an event was accepted after a moment, whatever any clock says. The moment is what a transaction saw: the
-- newest event, and a snapshot. A greater id was given later; a lower one may still have been in flight then, and the
-- snapshot tells. Both sides are needed: ids precede commits, and transaction ids mean nothing after a dump was
-- restored into another cluster, where every new event has a greater id. Null when there is no moment. Every
-- comparison of an event with a subscription's eligibility goes through here; the planner inlines it.
CREATE OR REPLACE FUNCTION accepted_after(event_id bigint, accepted_by xid8, newest_event bigint, seen pg_snapshot)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_id > newest_event OR NOT pg_visible_in_snapshot(accepted_by, seen);
