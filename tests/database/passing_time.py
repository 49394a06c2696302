"""Lets time pass for the health of endpoints, by moving back what has happened."""

from datetime import timedelta
from typing import LiteralString

from tests.database.seed import Seed

MOVES: tuple[LiteralString, ...] = (
    """UPDATE webhook_delivery_jobs SET leased_at = leased_at - %(time)s, finished_at = finished_at - %(time)s""",
    """UPDATE subscription_health
          SET watched_since = watched_since - %(time)s, first_failure_at = first_failure_at - %(time)s,
              last_failure_at = last_failure_at - %(time)s, last_success_at = last_success_at - %(time)s,
              warned_at_50 = warned_at_50 - %(time)s, warned_at_90 = warned_at_90 - %(time)s,
              disabled_at = disabled_at - %(time)s,
              disabled_failing_since = disabled_failing_since - %(time)s""",
    """UPDATE subscription_health_mark SET counted_until = counted_until - %(time)s""",
    """UPDATE events SET created_at = created_at - %(time)s""",
    """UPDATE dead_letters SET failed_at = failed_at - %(time)s""",
)


async def pass_time(seed: Seed, **time: float) -> None:
    """Let timedelta(**time) pass."""
    for statement in MOVES:
        await seed.rewrite(statement, {"time": timedelta(**time)})
