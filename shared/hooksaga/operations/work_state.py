"""Whether the pipeline is at work on a database. The audit judges how long something waits only while it is."""

from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_row
from hooksaga.adapters.queries import load_queries


@dataclass(frozen=True, slots=True)
class _WorkState:
    at_rest: bool


async def begin_work(connection: Connection) -> None:
    """Note that the pipeline is at work from now on. Changes nothing when that is known. The lease cleaner calls it
    with each of its ticks, so that a process that ended does not speak for another."""
    await connection.execute(load_queries("work_state")["begin_work"])


async def end_work(connection: Connection) -> None:
    """Note that nothing is at work any more: what waits from now on waits for a start."""
    await connection.execute(load_queries("work_state")["end_work"])


async def is_at_rest(connection: Connection) -> bool:
    """Whether nothing is at work: the database was restored, or `hooksaga up` was stopped, and not started again."""
    row = await fetch_row(connection, load_queries("work_state")["show_work"], {}, _WorkState)
    return row is not None and row.at_rest
