-- Whether the outbox holds an earlier event of this ordering key for this subscription, whose saga is still to come. ''
-- stands for events without a key. SECURITY DEFINER: the orchestrator reads no outbox.
CREATE OR REPLACE FUNCTION earlier_event_waits(of_subscription bigint, before_event bigint, of_key text)
RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public SET enable_seqscan = off AS $$
    SELECT EXISTS (
        SELECT FROM routing_outbox o
          JOIN events e ON e.id = o.event_id
          JOIN subscriptions s ON s.id = of_subscription AND s.tenant_id = e.tenant_id
               AND s.event_types && patterns_of_type(e.event_type)
               AND s.id = coalesce(e.test_subscription_id, s.id)
               AND (e.test_subscription_id IS NOT NULL
                    OR filter_matches(s.filter_path, compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes))))
         WHERE of_key <> '' AND o.ordering_key = of_key AND o.event_id < before_event)
        OR EXISTS (
        SELECT FROM routing_outbox o
          JOIN events e ON e.id = o.event_id
          JOIN subscriptions s ON s.id = of_subscription AND s.tenant_id = e.tenant_id
               AND s.event_types && patterns_of_type(e.event_type)
               AND s.id = coalesce(e.test_subscription_id, s.id)
               AND (e.test_subscription_id IS NOT NULL
                    OR filter_matches(s.filter_path, compared_attributes(attributes_of_event(e.attributes, e.extracted_attributes))))
         WHERE of_key = '' AND o.ordering_key IS NULL AND o.event_id < before_event)
$$;
