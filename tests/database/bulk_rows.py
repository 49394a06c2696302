"""Many dead letters and old events in one statement each, and what the tests of bulk operations ask of the rows."""

from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

from hooksaga.adapters.database import Connection
from hooksaga.core.requeue_models import NewBulkOperation
from hooksaga.operations.bulk_operations import BulkOperation, start_bulk_operation
from hooksaga.operations.bulk_steps import step_bulk_operation
from hooksaga.operations.requester import Requester
from tests.database.seed import Seed

ANYBODY = Requester(None, "the tests")

_EVENTS: LiteralString = """
    INSERT INTO events (event_type, tenant_id, payload, created_at)
    SELECT s.event_types[1], s.tenant_id, '{"n": 1}', %(first)s::timestamptz + n * interval '1 second'
      FROM subscriptions s, generate_series(1, %(count)s) AS n WHERE s.id = %(subscription_id)s
    RETURNING id"""

# The number of sagas that a routing started matters to nobody here.
_ROUTED: LiteralString = """
    INSERT INTO routing_decisions (event_id, newest_change, snapshot, sagas_started)
    SELECT id, 0, pg_current_snapshot(), 0 FROM event"""

OLD_EVENTS: LiteralString = f"WITH event AS ({_EVENTS}) {_ROUTED}"

DEAD_LETTERS: LiteralString = f"""
    WITH event AS ({_EVENTS}), routed AS ({_ROUTED}), saga AS (
        INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, final_error_code)
        SELECT id, %(subscription_id)s, 'DeadLettered', %(error_code)s FROM event RETURNING id, event_id
    )
    INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, final_error_code, failed_at,
                              payload_snapshot)
    SELECT g.id, g.event_id, s.id, s.tenant_id, s.event_types[1], %(error_code)s,
           %(first)s::timestamptz + row_number() OVER (ORDER BY g.id) * interval '1 second', '{{"n": 1}}'
      FROM saga g, subscriptions s WHERE s.id = %(subscription_id)s ORDER BY g.id"""

AN_HOUR_AGO = timedelta(hours=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def old_events(seed: Seed, subscription_id: int, count: int, first: datetime | None = None) -> None:
    """Events of the subscription's type, a second apart, that were routed to nobody."""
    first = first or datetime.now(UTC) - AN_HOUR_AGO
    params = {"subscription_id": subscription_id, "count": count, "first": first}
    await seed.rewrite(OLD_EVENTS, params)


async def dead_letters(
    seed: Seed, subscription_id: int, count: int, error_code: str = "http_503", first: datetime | None = None
) -> None:
    """Dead letters of the subscription, a second apart."""
    first = first or datetime.now(UTC) - AN_HOUR_AGO
    params = {"subscription_id": subscription_id, "count": count, "error_code": error_code, "first": first}
    await seed.rewrite(DEAD_LETTERS, params)


def requeue_of(rate: float = 1000, **wanted: Any) -> NewBulkOperation:
    return _operation("requeue", rate, wanted)


def backfill_of(subscription_id: int, rate: float = 1000, **wanted: Any) -> NewBulkOperation:
    since = wanted.pop("since", datetime.now(UTC) - timedelta(days=1))
    return _operation("backfill", rate, {"subscription_id": subscription_id, "since": since, **wanted})


def resend_of(rate: float = 1000, **wanted: Any) -> NewBulkOperation:
    return _operation("resend", rate, {"ended_after": LONG_AGO, **wanted})


def _operation(kind: str, rate: float, wanted: dict[str, Any]) -> NewBulkOperation:
    """As the API reads it: moments are texts."""
    chosen = {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in wanted.items()
    }
    return NewBulkOperation.model_validate({"kind": kind, "filter": chosen, "rate_per_second": rate})


async def started(connection: Connection, wanted: NewBulkOperation) -> BulkOperation:
    """A new operation."""
    operation, created = await start_bulk_operation(connection, wanted, ANYBODY)
    assert created
    return operation


async def step_until_nothing_is_left(
    connection: Connection, *, horizon_seconds: float = 3600, max_open: int = 100
) -> int:
    """How many sagas were started, by as many steps as it takes."""
    count, passed_by = 0, frozenset[int]()
    while True:
        step = await step_bulk_operation(
            connection, horizon_seconds=horizon_seconds, passed_by=passed_by, max_open=max_open
        )
        if step.operation_id is None:
            return count
        count += len(step.saga_ids)
        if not step.saga_ids:
            passed_by |= {step.operation_id}


async def let_time_pass(seed: Seed, seconds: float) -> None:
    """Shift the start of everything that was started into the past."""
    params = {"seconds": seconds}
    await seed.rewrite(
        "UPDATE bulk_operations SET last_slot_at = last_slot_at - make_interval(secs => %(seconds)s)", params
    )
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = next_attempt_at - make_interval(secs => %(seconds)s)"
        " WHERE bulk_operation_id IS NOT NULL",
        params,
    )


async def most_in_a_second(seed: Seed) -> int:
    """The most sagas of bulk operations that are due within any one second."""
    return await seed.value("""
        SELECT coalesce(max(count), 0) FROM (
            SELECT count(*) OVER (ORDER BY next_attempt_at RANGE BETWEEN CURRENT ROW AND '0.999999 s' FOLLOWING)
              FROM webhook_delivery_sagas WHERE bulk_operation_id IS NOT NULL) AS windows""")
