-- Whether an event was accepted after a moment, independent of clocks. The moment is what a transaction saw: the
-- newest event id, and a snapshot. An event with a greater id was accepted later; one with a lower id may still have
-- been in flight, which the snapshot tells. Both are needed: ids are assigned before commit, and in a database
-- restored into another cluster transaction ids are meaningless, but new events have greater ids. Null if there is no
-- moment. Every comparison of an event with a subscription's eligibility uses this function; the planner inlines it.
CREATE OR REPLACE FUNCTION accepted_after(event_id bigint, accepted_by xid8, newest_event bigint, seen pg_snapshot)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN event_id > newest_event OR NOT pg_visible_in_snapshot(accepted_by, seen);
