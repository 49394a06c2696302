"""Gauges of the pipeline, from the views of dashboards (sql/schema/13_views.sql). Reads only, as `observer`; on AWS the
health monitor reads those of flow control."""

from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_one
from hooksaga.adapters.queries import load_queries


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGauges:
    """How many active subscriptions have waiting deliveries that may not start, each counted once, by the reason.

    breaker_open_for_an_hour: those that are not paused and whose circuit breaker has been open for so long.
    """

    paused: int
    retry_after: int
    breaker_open: int
    breaker_open_for_an_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges(FlowGauges):
    """Gauges of all tenants at one moment. An age is 0 when nothing waits."""

    outbox_age_seconds: float
    oldest_due_saga_age_seconds: float
    retry_debt_sagas: int
    in_flight_jobs: int
    retention_behind_seconds: float


async def read_gauges(connection: Connection) -> Gauges:
    """Read all gauges in one statement, so that they belong to one moment."""
    return await fetch_one(connection, load_queries("observe")["gauges"], {}, Gauges)


async def read_flow_gauges(connection: Connection) -> FlowGauges:
    query = load_queries("observe")["subscriptions_by_flow_state"]
    return await fetch_one(connection, query, {}, FlowGauges)
