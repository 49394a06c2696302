"""Brings rows into a wanted state the way they get there in real life: through the stages, as the owner.

What the stages can never do, such as moving a row's time, is done behind the back of the guards by `rewrite`.
"""

import asyncio
import itertools
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, LiteralString

from psycopg.rows import dict_row

from hooksaga.adapters.database import Connection, fetch_value
from hooksaga.adapters.http_sender import SendOutcome
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.event_input import EventDraft
from hooksaga.core.models import NewSubscription
from hooksaga.core.saga import RetryPolicy, SagaStatus
from hooksaga.core.signing import encode_secret
from hooksaga.operations import subscriptions
from hooksaga.operations.audit import audit
from hooksaga.operations.verify_subscription import mark_verified
from hooksaga.stages import deliver
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.route_events import route_events
from tests.database import orchestrate
from tests.database.pattern_rows import PATTERNS

Params = Sequence[Any] | Mapping[str, Any]

POLICY = RetryPolicy()
LAST_ATTEMPT = RetryPolicy(max_retry_limit=1)
WORKER = "seed"


def outcome(error_code: str | None = None, **changes: Any) -> SendOutcome:
    """How a POST ended: with 200, or with the error code given."""
    usual: dict[str, Any] = {
        "response_status": 200 if error_code is None else 503,
        "error_code": error_code,
        "response_body": "",
        "response_truncated": False,
        "retry_after_seconds": None,
        "resolved_ip": "127.0.0.1",
        "duration_ms": 1,
    }
    return SendOutcome(**{**usual, **changes})


class Seed:
    """Makes rows through the connection that it is given, which is the owner's."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.secrets_key = generate_key()
        self.box = SecretBox([self.secrets_key])
        self.secrets: dict[int, str] = {}
        self._numbers = itertools.count(1)

    async def rows(self, query: LiteralString, params: Params = ()) -> list[dict[str, Any]]:
        """Every row of the answer by column name."""
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, params)
            return await cursor.fetchall()

    async def row(self, query: LiteralString, params: Params = ()) -> dict[str, Any]:
        """The one row of the answer."""
        (row,) = await self.rows(query, params)
        return row

    async def value(self, query: LiteralString, params: Params = ()) -> Any:
        """The one value of the answer."""
        (value,) = (await self.row(query, params)).values()
        return value

    async def findings(self) -> set[str]:
        """The invariants that the audit finds broken."""
        return {finding.invariant for finding in await audit(self.connection) if finding.rows}

    async def rewrite(self, statement: LiteralString, params: Params = ()) -> None:
        """Run a statement with all triggers and foreign keys off, as nobody can in production. What routing reads of
        subscriptions follows them nevertheless."""
        async with self.connection.transaction():
            await self.connection.execute("SET LOCAL session_replication_role = replica")
            await self.connection.execute(statement, params)
            if "UPDATE subscriptions" in statement:
                await self.connection.execute("DELETE FROM subscription_patterns")
                await self.connection.execute(PATTERNS)

    async def subscription(
        self,
        event_type: str | list[str] | None = None,
        callback_url: str | None = None,
        *,
        tenant_id: str = "default",
        verified: bool = True,
        **fields: Any,
    ) -> int:
        """An active subscription, by default of a type of its own, whose concurrency limit has grown. Its secret is in
        `secrets`."""
        number = next(self._numbers)
        event_type = event_type or f"type.{number}"
        wanted = [event_type] if isinstance(event_type, str) else event_type
        url = callback_url or f"https://receiver-{number}.example/hook"
        secret = encode_secret(secrets.token_bytes(32))
        made = await subscriptions.create_subscription(
            self.connection,
            NewSubscription(event_types=wanted, callback_url=url, **fields),
            tenant_id=tenant_id,
            callback_url=url,
            sealed_secret=self.box.seal(secret),
            box=self.box,
        )
        self.secrets[made.id] = secret
        if verified:
            await mark_verified(self.connection, made.id, url)
        await self.grow(made.id)
        return made.id

    async def grow(self, subscription_id: int, limit: float = 1000) -> None:
        """Let the concurrency limit of a subscription be as after many deliveries, or as given."""
        await self.connection.execute(
            "UPDATE subscription_flow SET in_flight_limit = %s, version = version + 1 WHERE subscription_id = %s",
            [limit, subscription_id],
        )

    async def accept(self, *drafts: EventDraft) -> list[AcceptedEvent]:
        """Accept the drafts; none may be refused."""
        answers = await accept_events(self.connection, drafts)
        accepted = [answer for answer in answers if isinstance(answer, AcceptedEvent)]
        assert len(accepted) == len(drafts), answers
        return accepted

    async def event(
        self,
        event_type: str,
        payload: str = '{"n": 1}',
        *,
        tenant_id: str = "default",
        attributes: dict[str, Any] | None = None,
    ) -> int:
        """The id of a new event that waits in the outbox."""
        given = json.dumps(attributes or {})
        (accepted,) = await self.accept(EventDraft(event_type, payload, tenant_id, attributes=given))
        return accepted.id

    async def event_for(self, subscription_id: int, payload: str = '{"n": 1}') -> int:
        """The id of a new event that the subscription takes."""
        wanted = await self.row(
            "SELECT event_types[1] AS event_type, tenant_id FROM subscriptions WHERE id = %s",
            [subscription_id],
        )
        return await self.event(wanted["event_type"], payload, tenant_id=wanted["tenant_id"])

    async def put_back(self, event_id: int) -> None:
        """Into the outbox, as if it had not been routed."""
        await self.connection.execute(
            "INSERT INTO routing_outbox (event_id, created_at) VALUES (%s, now())", [event_id]
        )

    async def saga(
        self,
        status: SagaStatus = SagaStatus.PENDING,
        subscription_id: int | None = None,
        payload: str = '{"n": 1}',
    ) -> int:
        """The id of a saga in that state. A subscription of its own, unless one is given.

        PendingRetry and DeadLettered have one failed attempt with http_503.
        """
        subscription_id = subscription_id or await self.subscription()
        event_id = await self.event_for(subscription_id, payload)
        await route_events(self.connection, event_ids=[event_id])
        saga_id: int = await self.value(
            "SELECT id FROM webhook_delivery_sagas WHERE event_id = %s AND subscription_id = %s",
            [event_id, subscription_id],
        )
        if status is not SagaStatus.PENDING:
            job_id = await self.start(saga_id)
            if status is not SagaStatus.IN_PROGRESS:
                await self.finish(job_id, error_code=None if status is SagaStatus.COMPLETED else "http_503")
                policy = LAST_ATTEMPT if status is SagaStatus.DEAD_LETTERED else POLICY
                await orchestrate.apply_results(self.connection, policy, job_ids=[job_id])
        assert await self.status_of(saga_id) == status
        return saga_id

    async def start(self, saga_id: int) -> int:
        """Make the next attempt of a due saga, and give its job's id."""
        (moved,) = await orchestrate.start_one(self.connection, POLICY, saga_id)
        assert moved.job_id is not None
        return moved.job_id

    async def job(self, subscription_id: int | None = None, payload: str = '{"n": 1}') -> int:
        """The id of a job that waits for a worker."""
        return await self.active_job(await self.saga(SagaStatus.IN_PROGRESS, subscription_id, payload))

    async def active_job(self, saga_id: int) -> int:
        """The id of the job under way."""
        return await self.value(
            "SELECT id FROM webhook_delivery_jobs WHERE saga_id = %s AND status IN ('Pending', 'Leased')",
            [saga_id],
        )

    async def jobs(self, subscription_id: int, count: int) -> list[int]:
        """Many jobs of one subscription that wait for a worker."""
        wanted = await self.row(
            "SELECT event_types[1] AS event_type, tenant_id FROM subscriptions WHERE id = %s",
            [subscription_id],
        )
        draft = EventDraft(wanted["event_type"], '{"n": 1}', wanted["tenant_id"])
        await self.accept(*[draft] * count)
        routed = await route_events(self.connection, max_events=count)
        moved = await orchestrate.start_attempts_of(self.connection, POLICY, routed.saga_ids)
        return [
            saga.job_id
            for saga in moved
            if saga.subscription_id == subscription_id and saga.job_id is not None
        ]

    async def claim(
        self, *job_ids: int, worker_id: str = WORKER, lease_seconds: float = 60
    ) -> list[ClaimedJob]:
        """Lease the jobs."""
        return await deliver.claim_jobs(
            self.connection, job_ids, worker_id=worker_id, lease_seconds=lease_seconds
        )

    async def finish(self, job_id: int, error_code: str | None = None, **changes: Any) -> None:
        """Claim the job and record how its POST ended; the saga does not know yet."""
        (claimed,) = await self.claim(job_id)
        result = AttemptResult(claimed, outcome(error_code, **changes))
        assert await deliver.record_results(self.connection, [result], worker_id=WORKER) == {job_id}

    async def dead_letter(self, subscription_id: int | None = None, payload: str = '{"n": 1}') -> int:
        """The id of a dead letter."""
        saga_id = await self.saga(SagaStatus.DEAD_LETTERED, subscription_id, payload)
        return await self.value("SELECT id FROM dead_letters WHERE saga_id = %s", [saga_id])

    async def make_due(self, saga_id: int) -> None:
        """End the wait of a saga."""
        await self.rewrite(
            "UPDATE webhook_delivery_sagas SET next_attempt_at = now() - interval '1 second' WHERE id = %s",
            [saga_id],
        )

    async def expire_lease(self, job_id: int) -> None:
        """Let the lease of a job be over."""
        await self.rewrite(
            "UPDATE webhook_delivery_jobs SET lease_until = now() - interval '1 second' WHERE id = %s",
            [job_id],
        )

    async def make_old(self, saga_id: int, days: float = 40) -> int:
        """Everything of the saga happened so much earlier. Its id again."""
        shift = timedelta(days=days)
        await self.rewrite(
            "UPDATE events e SET created_at = e.created_at - %s"
            " FROM webhook_delivery_sagas s WHERE s.id = %s AND e.id = s.event_id",
            [shift, saga_id],
        )
        await self.rewrite(
            "UPDATE webhook_delivery_jobs SET created_at = created_at - %s, finished_at = finished_at - %s"
            " WHERE saga_id = %s",
            [shift, shift, saga_id],
        )
        await self.rewrite(
            "UPDATE webhook_delivery_sagas SET created_at = created_at - %s, updated_at = updated_at - %s"
            " WHERE id = %s",
            [shift, shift, saga_id],
        )
        await self.rewrite(
            "UPDATE dead_letters SET failed_at = failed_at - %s WHERE saga_id = %s", [shift, saga_id]
        )
        return saga_id

    async def status_of(self, saga_id: int) -> SagaStatus:
        """The saga's state now."""
        status = await self.value("SELECT status::text FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
        return SagaStatus(status)


async def as_retention_role(seed: Seed, statement: str) -> None:
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL ROLE retention_operator")
        await seed.connection.execute(statement.encode())


async def saga_row(seed: Seed, saga_id: int | None) -> dict[str, Any]:
    return await seed.row("SELECT * FROM webhook_delivery_sagas WHERE id = %s", [saga_id])


async def pid(connection: Connection) -> int:
    return await fetch_value(connection, "SELECT pg_backend_pid()", {})


async def until_blocked(watcher: Connection, blocked: Connection) -> None:
    """Wait until the connection waits for a lock of another one."""
    deadline = time.monotonic() + 10
    question: LiteralString = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
    while True:
        answer = await (await watcher.execute(question, [blocked.info.backend_pid])).fetchone()
        if answer and answer[0]:
            return
        assert time.monotonic() < deadline, "it never waited for a lock"
        await asyncio.sleep(0.01)


async def receivers(seed: Seed, event_id: int) -> list[int]:
    """Return the ids of the subscriptions that the event was routed to."""
    rows = await seed.rows(
        "SELECT subscription_id AS id FROM webhook_delivery_sagas WHERE event_id = %s ORDER BY id", [event_id]
    )
    return [row["id"] for row in rows]
