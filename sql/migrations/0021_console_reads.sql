-- The console shows which endpoints were switched off, the latest first. They are few, so this costs nothing where
-- all is well.
CREATE INDEX idx_health_disabled ON subscription_health (disabled_at) WHERE disabled_at IS NOT NULL;
