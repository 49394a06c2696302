"""State whether the pipeline is at work on a database. The audit judges waiting times only while it is."""

from hooksaga.adapters.database import Connection, fetch_value
from hooksaga.adapters.queries import load_queries


async def begin_work(connection: Connection) -> None:
    """Record that the pipeline is at work from now on. Changes nothing if already recorded. The lease cleaner calls it
    at each of its ticks, so that the end of one process does not hide another that still works."""
    await connection.execute(load_queries("work_state")["begin_work"])


async def end_work(connection: Connection) -> None:
    """Record that no process is at work: from now on, work waits for a start."""
    await connection.execute(load_queries("work_state")["end_work"])


async def is_at_rest(connection: Connection) -> bool:
    """Return whether no process is at work: the database was restored, or `hooksaga up` stopped and not restarted."""
    return bool(await fetch_value(connection, load_queries("work_state")["show_work"], {}))
