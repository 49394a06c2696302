"""Gauges of the pipeline, from the views of dashboards (sql/schema/13_views.sql). Reads only, as `observer`."""

from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_row
from hooksaga.adapters.queries import load_queries


@dataclass(frozen=True, slots=True)
class Gauges:
    """Gauges of all tenants at one moment. An age is 0 when nothing waits."""

    outbox_age_seconds: float
    oldest_due_saga_age_seconds: float
    retry_debt_sagas: int
    in_flight_jobs: int


async def read_gauges(connection: Connection) -> Gauges:
    """Read all gauges in one statement, so that they belong to one moment."""
    row = await fetch_row(connection, load_queries("observe")["gauges"], {}, Gauges)
    assert row is not None
    return row
