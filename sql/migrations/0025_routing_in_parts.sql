-- An event that very many subscriptions take is routed in parts, each a transaction: one statement for all of them could
-- take longer than a statement may, and then the event, and whatever stood beside it in the batch, would never be routed.
-- Subscriptions up to this id have their saga; the row stays until the last part is done.
ALTER TABLE routing_outbox ADD COLUMN started_through bigint NOT NULL DEFAULT 0;

-- One row per part: what its statement saw of the subscriptions above after_subscription, up to through_subscription. The
-- last part, of most events the only one, has no upper end.
ALTER TABLE routing_decisions
    ADD COLUMN after_subscription bigint NOT NULL DEFAULT 0,
    ADD COLUMN through_subscription bigint,
    ADD CONSTRAINT part_has_a_range CHECK (through_subscription > after_subscription);
ALTER TABLE routing_decisions DROP CONSTRAINT routing_decisions_pkey;
ALTER TABLE routing_decisions ADD PRIMARY KEY (event_id, after_subscription);

GRANT INSERT (after_subscription, through_subscription) ON routing_decisions TO router_worker;
