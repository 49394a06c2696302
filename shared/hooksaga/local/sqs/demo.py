"""`hooksaga demo --sqs`: the demo with functions and queues, and its cost figures."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from rich.console import Console

from hooksaga.adapters.database import Connection, Role, fetch_rows
from hooksaga.local.demo import run_demo
from hooksaga.local.given_database import run_as
from hooksaga.local.sqs.system import SqsSystem
from hooksaga.runtime.settings import Settings

FIGURES: LiteralString = """
SELECT count(*) AS attempts,
       count(*) FILTER (WHERE j.status = 'Completed') AS deliveries,
       coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM j.leased_at - e.created_at))
                FILTER (WHERE j.attempt_number = 1 AND s.requeued_from IS NULL), 0)::float8 AS wait_seconds
  FROM webhook_delivery_jobs j
  JOIN webhook_delivery_sagas s ON s.id = j.saga_id
  JOIN events e ON e.id = s.event_id"""


@dataclass(frozen=True, slots=True)
class _Row:
    attempts: int
    deliveries: int
    wait_seconds: float


class _MeasuredSystem(SqsSystem):
    console: Console

    async def stop(self) -> None:
        row = (await run_as(self.address, Role.OWNER, _read_figures))[0]
        for line in _lines(self, row):
            self.console.print(line)
        await super().stop()


async def run_sqs_demo(
    data_dir: Path, console: Console, *, keep: Callable[[str, str, str], Awaitable[None]] | None = None
) -> bool:
    """Like run_demo, in SQS mode. Raises NoSqsEndpoint without an SQS API."""

    def make(settings: Settings, *, port: int) -> SqsSystem:
        system = _MeasuredSystem(settings, port=port)
        system.console = console
        return system

    return await run_demo(data_dir, console, keep=keep, make_system=make)


async def _read_figures(connection: Connection) -> list[_Row]:
    return await fetch_rows(connection, FIGURES, {}, _Row)


def _lines(system: SqsSystem, row: _Row) -> list[str]:
    messages = {
        queue: sum(len(batch.message_ids) for batch in source.handled)
        for queue, source in system.sources.items()
    }
    invocations = ", ".join(f"{name} {one.invocations}" for name, one in system.functions.items())
    counted = ", ".join(f"{queue} {count}" for queue, count in messages.items())
    each = sum(messages.values()) / max(1, row.attempts)
    return [
        f"{row.attempts} POSTs, {row.deliveries} of them good, by {each:.1f} messages each: {counted}",
        f"invocations: {invocations}",
        f"from an event's acceptance to its first POST: {row.wait_seconds * 1000:,.0f} ms (median)",
    ]
