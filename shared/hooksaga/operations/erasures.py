"""Erasures: remove everything that the producer sent from one event, or from the events that a tenant has.

A request is a row, which keeps who wanted it and why. Any process executes its next step: `hooksaga up`, or the
retention function on AWS. Each step is one transaction, so a process can end at any moment.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from hooksaga.adapters.database import Connection, fetch_found, fetch_row, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.erasures import ErasureStatus, NewErasure
from hooksaga.core.errors import NotFound
from hooksaga.operations.missing_event import missing_event
from hooksaga.operations.requester import Requester

MAX_EVENTS = 500
"""Events of one step, each with its deliveries, attempts and dead letters."""

MAX_DELIVERIES = 5_000
"""Deliveries of one step, about: an event with more is a step of its own."""

MAX_READ = 20_000
"""Events that a step reads in order to find those of the tenant."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure. webhook_id: of one event; None: all events that the tenant had, or those that had a value of the
    attribute, which is not kept. ended: waiting deliveries that ended with it.

    in_flight: attempts whose request could not be recalled.
    """

    id: int
    status: str
    tenant_id: str
    webhook_id: UUID | None
    attribute_name: str | None
    reason: str
    created_by: str
    created_by_key_id: int | None
    events: int
    dead_letters: int
    attempts: int
    ended: int
    in_flight: int
    created_at: datetime
    last_step_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class ErasureStep:
    """Result of one step. erasure_id None: no erasure is running. skipped: events that a later step takes, because
    another session has locked one of their rows."""

    erasure_id: int | None = None
    status: str = ErasureStatus.COMPLETED
    events: int = 0
    ended: int = 0
    skipped: int = 0

    @property
    def more(self) -> bool:
        """Whether the next step can do something at once."""
        return self.erasure_id is not None and not (self.events == 0 and self.skipped > 0)


@dataclass(frozen=True, slots=True)
class _StartedRow:
    id: int
    created: bool


async def start_erasure(
    connection: Connection, wanted: NewErasure, caller: Requester
) -> tuple[Erasure, bool]:
    """Start an erasure, or return the same one that is running; also returns whether this call
    started it. Raises NotFound `event_not_found`, or `tenant_not_found` for another tenant than the caller's.
    """
    if caller.tenant_id is not None and wanted.tenant_id not in (None, caller.tenant_id):
        raise NotFound("tenant_not_found", f"there is no tenant {wanted.tenant_id}")
    webhook_id = None if wanted.event_id is None else UUID(wanted.event_id.removeprefix("evt_"))
    chosen = wanted.attribute_filter
    params = {
        "webhook_id": webhook_id,
        "attribute_name": chosen and chosen.name,
        "attribute_values": chosen and f"[{','.join(chosen.values)}]",
        "tenant_id": wanted.tenant_id or caller.tenant_id,
        "reason": wanted.reason,
        "key_id": caller.key_id,
        "created_by": caller.name,
    }
    row = await fetch_row(connection, load_queries("erasures")["start_erasure"], params, _StartedRow)
    if row is None:
        assert webhook_id is not None
        raise await missing_event(connection, webhook_id)
    return await show_erasure(connection, row.id, tenant_id=caller.tenant_id), row.created


async def step_erasure(
    connection: Connection,
    *,
    max_events: int = MAX_EVENTS,
    max_read: int = MAX_READ,
    max_deliveries: int = MAX_DELIVERIES,
) -> ErasureStep:
    """Execute one step of one running erasure, the one stepped longest ago."""
    params = {"max_events": max_events, "max_read": max_read, "max_deliveries": max_deliveries}
    row = await fetch_row(connection, load_queries("erasures")["step_erasure"], params, ErasureStep)
    return row or ErasureStep()


async def list_erasures(
    connection: Connection, *, tenant_id: str | None, before_id: int | None = None, limit: int = 50
) -> list[Erasure]:
    """List erasures, newest first."""
    params = {"tenant_id": tenant_id, "before_id": before_id, "limit": limit}
    return await fetch_rows(connection, load_queries("erasures")["list_erasures"], params, Erasure)


async def show_erasure(connection: Connection, erasure_id: int, *, tenant_id: str | None) -> Erasure:
    """Return one erasure. Raises NotFound `erasure_not_found`, also for another tenant's."""
    params = {"id": erasure_id, "tenant_id": tenant_id}
    missing = NotFound("erasure_not_found", f"there is no erasure {erasure_id}")
    return await fetch_found(connection, load_queries("erasures")["show_erasure"], params, Erasure, missing)
