"""Endpoint health: counts results of attempts, warns, and disables subscriptions of dead endpoints. Deletes nothing.

The monitor also tells subscribers about dead letters and circuit breakers (operational_events, breaker_events).

Running a step again changes nothing more, and concurrent monitors do each thing once. Workers and orchestrators neither
write here nor wait for it: the monitor reads finished jobs afterwards.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, LiteralString, Protocol, TypeAlias, TypeVar, assert_never

from hooksaga.adapters.database import Connection, fetch_rows, fetch_value, transaction
from hooksaga.adapters.queries import load_queries
from hooksaga.core.endpoint_health import (
    FIRST_WARNING,
    FRESH_SECONDS,
    LAST_WARNING,
    MIN_FAILURES,
    DisabledReason,
    EarlyWarning,
    FailureRun,
    HealthPolicy,
    expected_disable_time,
    judge_run,
)
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow, RowRefused
from hooksaga.core.operational_events import (
    FailingEndpoint,
    OperationalEvent,
    RecoveredEndpoint,
    subscription_disabled,
    subscription_failing,
)
from hooksaga.core.outcomes import UNCOUNTED
from hooksaga.core.trace import Traced
from hooksaga.operations.breaker_events import BreakerTold, tell_breakers
from hooksaga.operations.operational_events import BATCH, store_dead_letter_events, store_operational_events
from hooksaga.operations.recovery_events import tell_recoveries
from hooksaga.stages.batches import refused_at_savepoints

Answer = TypeVar("Answer")

COUNT_BATCH = 5_000
SETTLE_SECONDS = 60.0
"""An attempt is counted when its result is this old: twice the statement timeout of the writer."""
GONE_LOOKBACK_SECONDS = 3600.0
"""An older 410 that no monitor has seen is found at the next 410: the subscription still receives events."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about one subscription. It contains no callback URL."""

    subscription_id: int
    tenant_id: str
    what: DisabledReason | EarlyWarning
    consecutive_failures: int
    error_code: str | None


@dataclass(frozen=True, slots=True)
class Watched:
    """Result of one step: attempts counted, verdicts, endpoints that work again, changes of circuit breakers,
    operational events, and the subscriptions or dead letters that the database refused to change. more: call again."""

    attempts: int = 0
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    recovered: list[RecoveredEndpoint] = field(default_factory=list[RecoveredEndpoint])
    breakers: list[BreakerTold] = field(default_factory=list[BreakerTold])
    events: list[Traced] = field(default_factory=list[Traced])
    refused: list[RefusedRow] = field(default_factory=list[RefusedRow])
    more: bool = False


async def count_attempts(
    connection: Connection, *, settle_seconds: float = SETTLE_SECONDS, limit: int = COUNT_BATCH
) -> int:
    """Count the next finished attempts, each exactly once, and return how many. limit or more: call again."""
    params = {
        "settle_seconds": settle_seconds,
        "limit": limit,
        "uncounted": [code.value for code in UNCOUNTED],
    }
    return await fetch_value(connection, load_queries("watch_endpoints")["count_attempts"], params)


async def disable_gone(connection: Connection, policy: HealthPolicy, *, limit: int = BATCH) -> Watched:
    """Disable the subscriptions whose receiver answered 410, regardless of the policy for failures."""

    def decide(_endpoint: FailingEndpoint) -> DisabledReason:
        return DisabledReason.GONE

    wanted = {"lookback_seconds": GONE_LOOKBACK_SECONDS, "limit": limit}
    return await _decide(connection, policy, load_queries("watch_endpoints")["lock_gone"], wanted, decide)


async def judge_failing(connection: Connection, policy: HealthPolicy, *, limit: int = BATCH) -> Watched:
    """Warn about subscriptions whose attempts only fail, and disable those that failed for too long."""
    if not policy.disables_endpoints:
        return Watched()

    def decide(endpoint: FailingEndpoint) -> Decision:
        run = FailureRun(
            endpoint.failures,
            endpoint.first_failure_at,
            endpoint.last_failure_at,
            endpoint.warned_at_50,
            endpoint.warned_at_90,
        )
        return judge_run(run, policy, endpoint.now)

    wanted = {
        "warn_seconds": policy.seconds_until(FIRST_WARNING),
        "warn_again_seconds": policy.seconds_until(LAST_WARNING),
        "disable_seconds": policy.disable_after_seconds,
        "fresh_seconds": FRESH_SECONDS,
        "min_failures": MIN_FAILURES,
        "limit": limit,
    }
    return await _decide(connection, policy, load_queries("watch_endpoints")["lock_failing"], wanted, decide)


Decision: TypeAlias = DisabledReason | EarlyWarning | None
_Decided: TypeAlias = tuple[FailingEndpoint, DisabledReason | EarlyWarning]


async def _decide(
    connection: Connection,
    policy: HealthPolicy,
    lock: LiteralString,
    wanted: dict[str, Any],
    decide: Callable[[FailingEndpoint], Decision],
) -> Watched:
    """Lock, decide, record and store events in one transaction: there is an event exactly for each recorded verdict."""
    async with transaction(connection):
        endpoints = await fetch_rows(connection, lock, wanted, FailingEndpoint)
        decided = [(one, what) for one in endpoints if (what := decide(one)) is not None]
        if not decided:
            return Watched()
        done = Watched()

        async def carry_out(part: Sequence[_Decided]) -> list[Verdict]:
            await _note(connection, part)
            events = [_event(one, what, policy) for one, what in part]
            done.events.extend(await store_operational_events(connection, events))
            return [_verdict(one, what) for one, what in part]

        def tell(refused: _Decided, error: RowRefused) -> None:
            done.refused.append(RefusedRow(reason=str(error), subscription_id=refused[0].id))

        done.verdicts.extend(await refused_at_savepoints(connection, carry_out, decided, tell))
    return replace(done, more=len(done.verdicts) == wanted["limit"])


async def _note(
    connection: Connection, decided: Sequence[tuple[FailingEndpoint, DisabledReason | EarlyWarning]]
) -> None:
    verdicts = [what for _, what in decided]
    columns = {
        "subscription_ids": [endpoint.id for endpoint, _ in decided],
        "percents": [what.percent if isinstance(what, EarlyWarning) else None for what in verdicts],
        "first_failures": [endpoint.first_failure_at for endpoint, _ in decided],
        "reasons": [what.value if isinstance(what, DisabledReason) else None for what in verdicts],
    }
    await connection.execute(load_queries("watch_endpoints")["note_verdicts"], columns)


def _event(
    endpoint: FailingEndpoint, what: DisabledReason | EarlyWarning, policy: HealthPolicy
) -> OperationalEvent:
    match what:
        case DisabledReason():
            return subscription_disabled(endpoint, what)
        case EarlyWarning():
            end = expected_disable_time(endpoint.first_failure_at, policy)
            return subscription_failing(endpoint, what.percent, end)
        case _:
            assert_never(what)


def _verdict(endpoint: FailingEndpoint, what: DisabledReason | EarlyWarning) -> Verdict:
    return Verdict(endpoint.id, endpoint.tenant_id, what, endpoint.failures, endpoint.last_error_code)


async def _count(connection: Connection, policy: HealthPolicy) -> Watched:
    attempts = await count_attempts(connection)
    return Watched(attempts=attempts, more=attempts >= COUNT_BATCH)


async def _send_events(connection: Connection, policy: HealthPolicy) -> Watched:
    refused: list[RefusedRow] = []
    events = await store_dead_letter_events(connection, on_refusal=refused.append)
    return Watched(events=events, refused=refused, more=len(events) == BATCH)


async def _tell_breakers(connection: Connection, policy: HealthPolicy) -> Watched:
    refused: list[RefusedRow] = []
    told = await tell_breakers(connection, on_refusal=refused.append)
    return Watched(breakers=told.changes, events=told.events, refused=refused, more=told.looked_at == BATCH)


async def _tell_recoveries(connection: Connection, policy: HealthPolicy) -> Watched:
    refused: list[RefusedRow] = []
    told = await tell_recoveries(connection, on_refusal=refused.append)
    more = len(told.endpoints) == BATCH
    return Watched(recovered=told.endpoints, events=told.events, refused=refused, more=more)


class Step(Protocol):
    """A unit of the monitor's work, safe to repeat."""

    async def __call__(self, connection: Connection, policy: HealthPolicy) -> Watched: ...


STEPS: tuple[Step, ...] = (
    _send_events,
    _tell_breakers,
    disable_gone,
    _count,
    _tell_recoveries,
    judge_failing,
)
"""All steps of the monitor, each its own unit, in this order."""


async def take_steps(take: Callable[[Step], Awaitable[Answer]]) -> list[Answer]:
    """Return the result of `take` for each step. A failing step does not stop the later ones: its error is raised at
    the end. Raises DatabaseUnavailable at once."""
    answers: list[Answer] = []
    fault: Exception | None = None
    for step in STEPS:
        try:
            answers.append(await take(step))
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - raised below
            fault = fault or error
    if fault is not None:
        raise fault
    return answers
