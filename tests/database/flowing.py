"""An endpoint whose deliveries are started, answered and waited for, as tests of flow control need it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, LiteralString

from hooksaga.adapters.database import Connection
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import RetryPolicy
from hooksaga.stages.route_events import route_events
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.start_attempts import Started
from tests.database import orchestrate
from tests.database.seed import POLICY, Seed

PASS_TIME: tuple[LiteralString, ...] = (
    """UPDATE subscription_flow
          SET limit_halved_at = limit_halved_at - %(time)s, tokens_at = tokens_at - %(time)s,
              retry_after_until = retry_after_until - %(time)s, breaker_opened_at = breaker_opened_at - %(time)s,
              probe_at = probe_at - %(time)s, slow_until = slow_until - %(time)s, wake_at = wake_at - %(time)s
        WHERE subscription_id = %(id)s""",
    """UPDATE subscription_health SET breaker_told_at = breaker_told_at - %(time)s WHERE subscription_id = %(id)s""",
    """UPDATE webhook_delivery_sagas SET next_attempt_at = next_attempt_at - %(time)s
        WHERE subscription_id = %(id)s AND status IN ('Pending', 'PendingRetry')""",
    """UPDATE subscriptions SET paused_at = paused_at - %(time)s, resumed_at = resumed_at - %(time)s
        WHERE id = %(id)s""",
)


class Endpoint:
    """A subscription, and the orchestrator that starts its deliveries."""

    def __init__(self, seed: Seed, orchestrator: Connection, subscription_id: int) -> None:
        self.seed = seed
        self.orchestrator = orchestrator
        self.id = subscription_id

    async def events(self, count: int, key: str | None = None) -> list[int]:
        """Accept and route events; the ids of their sagas, in their order."""
        await self.accept(count, key)
        await route_events(self.seed.connection, max_events=1000)
        rows = await self.seed.rows(
            "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s ORDER BY id DESC LIMIT %s",
            [self.id, count],
        )
        return sorted(row["id"] for row in rows)

    async def accept(self, count: int, key: str | None = None) -> list[int]:
        wanted = await self.seed.row(
            "SELECT event_types[1] AS event_type, tenant_id FROM subscriptions WHERE id = %s", [self.id]
        )
        draft = EventDraft(wanted["event_type"], "{}", wanted["tenant_id"], ordering_key=key)
        return [accepted.id for accepted in await self.seed.accept(*[draft] * count)]

    async def start(self, connection: Connection | None = None, **how: Any) -> Started:
        """Look at this subscription once."""
        return await orchestrate.start_attempts(
            connection or self.orchestrator, POLICY, **{"subscription_ids": [self.id], "most_woken": 0, **how}
        )

    async def started(self) -> list[int]:
        """Look at it once; the sagas whose attempts were started."""
        return [move.saga_id for move in (await self.start()).moves if move.job_id is not None]

    async def woken(self) -> list[SagaMoved]:
        """Look at what is to be looked at by now."""
        return (await orchestrate.start_attempts(self.orchestrator, POLICY)).moves

    async def answer(
        self,
        saga_ids: Sequence[int],
        error_code: str | None = None,
        *,
        policy: RetryPolicy = POLICY,
        **how: Any,
    ) -> list[SagaMoved]:
        """Let the attempts under way end so, and apply their results."""
        for saga_id in saga_ids:
            await self.seed.finish(await self.seed.active_job(saga_id), error_code, **how)
        return await orchestrate.apply_results(self.orchestrator, policy)

    async def flow(self) -> dict[str, Any]:
        return await self.seed.row("SELECT * FROM subscription_flow WHERE subscription_id = %s", [self.id])

    async def seconds_until(self, column: LiteralString) -> float | None:
        row = await self.seed.row(
            "SELECT *, clock_timestamp() AS now FROM subscription_flow WHERE subscription_id = %s", [self.id]
        )
        return None if row[column] is None else (row[column] - row["now"]).total_seconds()

    async def pass_time(self, seconds: float) -> None:
        """Let time pass for this subscription and what waits for it."""
        for statement in PASS_TIME:
            await self.seed.rewrite(statement, {"time": timedelta(seconds=seconds), "id": self.id})

    async def statuses(self) -> list[str]:
        rows = await self.seed.rows(
            "SELECT status::text FROM webhook_delivery_sagas WHERE subscription_id = %s ORDER BY id",
            [self.id],
        )
        return [row["status"] for row in rows]

    async def in_progress(self) -> list[int]:
        rows = await self.seed.rows(
            "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s AND status = 'InProgress'"
            " ORDER BY id",
            [self.id],
        )
        return [row["id"] for row in rows]

    async def ends(self) -> list[str]:
        """Error codes of its dead letters."""
        rows = await self.seed.rows(
            "SELECT final_error_code FROM dead_letters WHERE subscription_id = %s ORDER BY saga_id", [self.id]
        )
        return [row["final_error_code"] for row in rows]


EndpointOf = Callable[..., Awaitable[Endpoint]]
