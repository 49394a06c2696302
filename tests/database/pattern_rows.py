"""The rows that a trigger derives from subscriptions, for tests that write subscriptions without triggers."""

from typing import LiteralString

PATTERNS: LiteralString = """
    INSERT INTO subscription_patterns (tenant_id, pattern, subscription_id, eligible_after_event, ordered, filtered)
    SELECT tenant_id, unnest(event_types), id, eligible_after_event, ordered, filter IS NOT NULL
      FROM subscriptions
     WHERE active AND verified AND deleted_at IS NULL AND eligible_after_event IS NOT NULL"""

PATTERN_HISTORY: LiteralString = """
    INSERT INTO subscription_pattern_history (tenant_id, pattern, subscription_id)
    SELECT tenant_id, unnest(event_types), id FROM subscriptions"""
