-- Writes the rows that routing reads: one for each event type of an eligible subscription. SECURITY DEFINER: roles that
-- change subscriptions cannot change the rows otherwise.
CREATE OR REPLACE FUNCTION keep_subscription_patterns() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.eligible_after_event IS NOT NULL THEN
        DELETE FROM subscription_patterns
         WHERE tenant_id = OLD.tenant_id AND pattern = ANY (OLD.event_types) AND subscription_id = OLD.id;
    END IF;
    IF NEW.eligible_after_event IS NOT NULL THEN
        INSERT INTO subscription_patterns (tenant_id, pattern, subscription_id, eligible_after_event, ordered, filtered)
        SELECT NEW.tenant_id, pattern, NEW.id, NEW.eligible_after_event, NEW.ordered, NEW.filter IS NOT NULL
          FROM unnest(NEW.event_types) AS pattern ORDER BY pattern;
    END IF;
    INSERT INTO subscription_pattern_history (tenant_id, pattern, subscription_id)
    SELECT NEW.tenant_id, pattern, NEW.id FROM unnest(NEW.event_types) AS pattern ORDER BY pattern
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
