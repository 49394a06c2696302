"""`hooksaga subscriptions pause`, `resume`, `retry-now` and `flow`."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.subscription_options import Id
from hooksaga.cli.terminal import echo, echo_error, short_time, show_fields, show_json

COUNTED = 10_000
"""The API counts waiting deliveries up to here."""

_STATES = {
    "open": "deliveries start when they are due",
    "paused": "deliveries wait until it is resumed",
    "retry_after": "the endpoint asked for time with Retry-After",
    "breaker_open": "the circuit breaker is open after failures in a row",
    "limited": "the rate limit or the limit of deliveries in flight is reached",
}


class Backlog(StrEnum):
    """What becomes of the deliveries that wait."""

    DELIVER = "deliver"
    DISCARD = "discard"


def pause(id: Id, *, api: Api) -> None:  # noqa: A002
    """Pause a subscription. Its events are kept and wait until it is resumed."""
    paused = api.ask("POST", f"/v1/subscriptions/{id}/pause")
    echo(f"subscription {id} is paused since {short_time(paused['paused_at'])}; {_waiting(paused['flow'])}")
    echo_error(f"Next: hooksaga subscriptions resume {id}")


def resume(
    id: Id,  # noqa: A002
    backlog: Annotated[
        Backlog, typer.Option(help="Deliver what waits, or end it as dead letters.")
    ] = Backlog.DELIVER,
    *,
    api: Api,
) -> None:
    """Resume a paused subscription. Discarded deliveries become dead letters, which can be requeued."""
    resumed = api.ask("POST", f"/v1/subscriptions/{id}/resume", json={"backlog": backlog.value})
    echo(f"subscription {id} is not paused; {_waiting(resumed['flow'])}")


def retry_now(id: Id, *, api: Api) -> None:  # noqa: A002
    """Retry at once all deliveries of a subscription that wait for a retry.

    A wait for Retry-After ends, and an open circuit breaker probes now.
    """
    done = api.ask("POST", f"/v1/subscriptions/{id}/retry-now")
    echo(f"{done['retried']:,} deliveries of subscription {id} are tried now")
    echo_error(f"Next: hooksaga subscriptions flow {id}")


def show_flow(id: Id, *, api: Api) -> None:  # noqa: A002
    """Show whether deliveries of a subscription start now, what keeps them, and how many wait."""
    client = api.connect()
    flow = client.call("GET", f"/v1/subscriptions/{id}")["flow"]
    if api.as_json:
        show_json(flow)
    else:
        show_fields({**flow, "state": f"{flow['state']}: {_STATES.get(flow['state'], '')}"})


def _waiting(flow: dict[str, Any]) -> str:
    count = flow["waiting"]
    more = " or more" if count >= COUNTED else ""
    return f"{count:,}{more} {'delivery waits' if count == 1 else 'deliveries wait'}"


def flow_in_brief(flow: dict[str, Any]) -> str:
    """Return the flow in one line."""
    until = f" until {short_time(flow['until'])}" if flow["until"] else ""
    return f"{flow['state']}{until}, {flow['in_flight']} of {flow['limit']} in flight, {_waiting(flow)}"


def rate_in_brief(limit: dict[str, Any] | None) -> str | None:
    """Return a rate limit in one line."""
    return None if limit is None else f"{limit['count']} per {limit['per_seconds']:g} s"
