"""Rules for a deployment's numbers: the order of its times, and the limits of the database and the mappings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hooksaga.runtime.settings import MAX_SUBSCRIPTION_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from hooksaga.aws.deployment import Environment

GATEWAY_TIMEOUT_SECONDS = 29
"""Timeout of API Gateway."""

RECORDING_SECONDS = 5
"""Seconds that delivery needs for claiming and recording, besides the longest POST."""

CONNECTIONS_FOR_PEOPLE = 10
"""Database connections that no function may use: for operators, RDS itself and the superuser."""

API_FUNCTIONS = ("ingest", "subscriptions", "admin", "console")
"""Functions behind the API."""


def problems_of(env: "Environment") -> Iterator[str]:
    """Return one line for each rule that the numbers of an environment break."""
    yield from _times_out_of_order(env)
    yield from _concurrency_out_of_order(env)
    if not env.is_local:
        yield from _database_out_of_order(env)


def _times_out_of_order(env: "Environment") -> Iterator[str]:
    longest_post = MAX_SUBSCRIPTION_TIMEOUT_SECONDS + RECORDING_SECONDS
    delivery, visibility = env.delivery.timeout_seconds, env.visibility_seconds("delivery")
    yield from _unless_below("longest POST and its recording", longest_post, "delivery's timeout", delivery)
    yield from _unless_below("delivery's timeout", delivery, "lease_seconds", env.lease_seconds)
    yield from _unless_below(
        "visibility timeout of delivery", visibility, "redispatch_seconds", env.redispatch_seconds
    )
    for name in API_FUNCTIONS:
        timeout = env.functions[name].timeout_seconds
        yield from _unless_below(
            f"{name}'s timeout", timeout, "the gateway's timeout", GATEWAY_TIMEOUT_SECONDS
        )
    for name in ("router", "orchestrator", "lease_cleaner", "health_monitor", "retention"):
        yield from _unless_below(
            f"{name}'s timeout", env.functions[name].timeout_seconds, "a minute, its schedule", 60
        )


def _concurrency_out_of_order(env: "Environment") -> Iterator[str]:
    quick = env.delivery.concurrency - env.slow_concurrency
    for name, value in (
        ("intake's concurrency", env.intake.concurrency),
        ("router's concurrency", env.router.concurrency),
        ("orchestrator's concurrency", env.orchestrator.concurrency),
        ("slow_concurrency", env.slow_concurrency),
        ("delivery's concurrency without slow_concurrency", quick),
    ):
        if not 2 <= value <= 1000:
            yield f"{name} is {value}: an event source mapping takes 2 to 1000"


def _database_out_of_order(env: "Environment") -> Iterator[str]:
    allowed = env.database.connection_limit - CONNECTIONS_FOR_PEOPLE
    if env.connections > allowed:
        yield (
            f"the functions can open {env.connections} connections, and {allowed} of the database's are theirs: "
            "lower a concurrency, or raise connection_limit with the instance's memory and, once it is deployed, "
            "reboot the instance (aws rds reboot-db-instance)"
        )
    if not 1 <= env.endpoint_zones <= env.zones:
        yield f"endpoint_zones is {env.endpoint_zones}: 1 to {env.zones}, as there are zones"
    if not 1 <= env.nat_zones <= env.zones:
        yield f"nat_zones is {env.nat_zones}: 1 to {env.zones}, as there are zones"
    elif env.nat_zones > 1 and env.nat == "instance":
        yield f"nat_zones is {env.nat_zones}: a NAT instance serves all zones"


def _unless_below(low_name: str, low: float, high_name: str, high: float) -> Iterator[str]:
    if low >= high:
        yield f"{low_name} ({low:g} s) must be below {high_name} ({high:g} s)"
