"""The functions and their rights in one table: database role, queues, secrets, internet access."""

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.routing import BaseRoute

from hooksaga.adapters.database import Role
from hooksaga.adapters.queues import Queue
from hooksaga.aws.function_files import routes_of_function


@dataclass(frozen=True, slots=True)
class FunctionDesign:
    """Resources and rights of one function. `routes` are those of its own code."""

    role: Role
    reads: Sequence[Queue] = ()
    sends: Sequence[Queue] = ()
    routes: Sequence[BaseRoute] = ()
    ticks: bool = False
    opens_secrets: bool = False
    calls_receivers: bool = False
    repeats: bool = False
    """Whether its messages can start it again, attempt after attempt, until the last one."""
    also: Sequence[Role] = ()
    """Additional roles that it logs in as."""
    pages: Sequence[str] = ()
    """Path prefixes that it handles, with any method."""

    @property
    def answers_http(self) -> bool:
        return bool(self.routes or self.pages)

    @property
    def roles(self) -> tuple[Role, ...]:
        return (self.role, *self.also)


DESIGNS = {
    "ingest": FunctionDesign(Role.INGEST, sends=(Queue.ROUTING,), routes=routes_of_function("ingest")),
    "intake": FunctionDesign(Role.INGEST, reads=(Queue.INTAKE,), sends=(Queue.ROUTING, Queue.INTAKE_REDRIVE)),
    "router": FunctionDesign(Role.ROUTER, reads=(Queue.ROUTING,), sends=(Queue.ORCHESTRATION,), ticks=True),
    "orchestrator": FunctionDesign(
        Role.ORCHESTRATOR,
        reads=(Queue.ORCHESTRATION,),
        sends=(Queue.ORCHESTRATION, Queue.DELIVERY, Queue.DELIVERY_SLOW, Queue.DEAD_TASKS),
        ticks=True,
        repeats=True,
    ),
    "delivery": FunctionDesign(
        Role.DELIVERY,
        reads=(Queue.DELIVERY, Queue.DELIVERY_SLOW),
        sends=(Queue.ORCHESTRATION,),
        opens_secrets=True,
        calls_receivers=True,
        repeats=True,
    ),
    "lease_cleaner": FunctionDesign(Role.LEASE_CLEANER, ticks=True),
    "health_monitor": FunctionDesign(Role.HEALTH_MONITOR, sends=(Queue.ROUTING,), ticks=True),
    "retention": FunctionDesign(Role.RETENTION, ticks=True),
    "subscriptions": FunctionDesign(
        Role.SUBSCRIPTIONS,
        sends=(Queue.ORCHESTRATION,),
        routes=routes_of_function("subscriptions"),
        opens_secrets=True,
        calls_receivers=True,
    ),
    "admin": FunctionDesign(
        Role.ADMIN,
        sends=(Queue.ORCHESTRATION,),
        routes=routes_of_function("admin"),
        ticks=True,
    ),
    # Pages use the API's operations, so the console needs the rights of the API's three functions and no others.
    "console": FunctionDesign(
        Role.ADMIN,
        sends=(Queue.ROUTING, Queue.ORCHESTRATION),
        opens_secrets=True,
        calls_receivers=True,
        also=(Role.SUBSCRIPTIONS, Role.INGEST),
        pages=("/console", "/portal"),
    ),
}
"""All functions except migrate: see components.migration."""


def reader_of(queue: Queue) -> str | None:
    """Return the function that reads the queue; None for queues of the user's tools."""
    return next((name for name, design in DESIGNS.items() if queue in design.reads), None)
