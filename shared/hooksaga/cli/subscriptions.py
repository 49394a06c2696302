"""`hooksaga subscriptions`: manage subscriptions."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, Cursor, Limit, Tenant, connect
from hooksaga.cli.backfill import backfill
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.subscription_create import create
from hooksaga.cli.subscription_flow import (
    pause,
    resume,
    retry_now,
    show_flow,
)
from hooksaga.cli.subscription_health import offer_missed_deliveries, show_health
from hooksaga.cli.subscription_match import match
from hooksaga.cli.subscription_options import (
    Active,
    BaseDelay,
    CallbackUrl,
    CircuitBreaker,
    DeliveryFormat,
    Description,
    EventTypes,
    Filter,
    Headers,
    Id,
    MaxInFlight,
    MaxRetryLimit,
    MaxWait,
    Ordered,
    RateLimit,
    RemovedHeaders,
    Reset,
    SecretFile,
    Timeout,
    given,
    read_filter,
    read_headers,
    read_rate_limit,
    read_secret,
)
from hooksaga.cli.subscription_stats import show_stats
from hooksaga.cli.subscription_test import send_test
from hooksaga.cli.subscription_view import health_of, shown, state_of
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_fields, show_json, show_table
from hooksaga.core.event_patterns import shown_event_types

app = typer.Typer(no_args_is_help=True, help="Subscriptions: create, list, show, change, delete.")

app.command("health")(show_health)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("flow")(show_flow)
app.command("retry-now")(retry_now)
app.command("test")(send_test)
app.command("match")(match)
app.command()(create)
app.command()(backfill)

PATH = "/v1/subscriptions"


@app.command("list")
def list_all(
    tenant: Tenant = None,
    event_type: Annotated[
        str | None, typer.Option(help="Only those that receive this event type.", show_default=False)
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions with the health of their endpoints, newest first."""
    wanted = given(tenant_id=tenant, event_type=event_type, limit=limit, cursor=cursor)
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params=wanted)
        page = client.read(answer)
    if as_json:
        show_json(answer)
        return
    rows = [
        (
            one["id"],
            one["tenant_id"],
            shown_event_types(one["event_types"]),
            state_of(one),
            health_of(one["health"]),
            one["callback_url"],
        )
        for one in page["items"]
    ]
    show_table(("id", "tenant", "event types", "state", "health", "callback URL"), rows)
    if page["next"]:
        echo_error(f"More results: --cursor {page['next']}")


class Window(StrEnum):
    """Time window of the statistics in `show`."""

    HOUR = "1h"
    DAY = "24h"


@app.command()
def show(
    id: Id,  # noqa: A002
    window: Annotated[Window, typer.Option(help="Time window of the statistics.")] = Window.DAY,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show one subscription with its statistics: success rate, latency, last error, backlog."""
    with connect(api_url, api_key) as client:
        subscription = client.call("GET", f"{PATH}/{id}")
        stats = client.call("GET", f"{PATH}/{id}/stats", params={"window": window.value})
    if as_json:
        show_json({**subscription, "stats": stats})
        return
    show_fields(shown(subscription))
    show_stats(stats)


@app.command()
def update(
    id: Id,  # noqa: A002
    event_type: EventTypes = None,
    callback_url: CallbackUrl = None,
    filter: Filter = None,  # noqa: A002
    description: Description = None,
    max_retry_limit: MaxRetryLimit = None,
    base_delay_seconds: BaseDelay = None,
    timeout_seconds: Timeout = None,
    max_in_flight: MaxInFlight = None,
    rate_limit: RateLimit = None,
    ordered: Ordered = None,
    max_wait_seconds: MaxWait = None,
    circuit_breaker: CircuitBreaker = None,
    delivery_format: DeliveryFormat = None,
    header: Headers = None,
    remove_header: RemovedHeaders = None,
    active: Active = None,
    reset: Reset = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Change only the given fields and headers.

    A new callback URL of a verified subscription takes effect after `verify`; until then deliveries use the old one.
    """
    changes = given(
        event_types=event_type,
        callback_url=callback_url,
        filter=read_filter(filter),
        description=description,
        max_retry_limit=max_retry_limit,
        base_delay_seconds=base_delay_seconds,
        timeout_seconds=timeout_seconds,
        max_in_flight=max_in_flight,
        rate_limit=read_rate_limit(rate_limit),
        ordered=ordered,
        max_wait_seconds=max_wait_seconds,
        circuit_breaker=circuit_breaker,
        format=delivery_format,
        headers={**(read_headers(header) or {}), **dict.fromkeys(remove_header or ())} or None,
        active=active,
    )
    changes |= {one.name.lower(): None for one in reset or ()}
    if not changes:
        raise WrongUse(
            "nothing to change: pass at least one option, see `hooksaga subscriptions update --help`"
        )
    _request("PATCH", id, api_url, api_key, as_json, changes)


@app.command()
def delete(id: Id, api_url: ApiUrl = DEFAULT_URL, api_key: ApiKey = None, as_json: AsJson = False) -> None:  # noqa: A002
    """Delete a subscription permanently. Its history is kept."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("DELETE", f"{PATH}/{id}")
    if as_json:
        show_json(answer)
    else:
        echo(f"subscription {id} is deleted and receives no more events")


@app.command()
def verify(id: Id, api_url: ApiUrl = DEFAULT_URL, api_key: ApiKey = None, as_json: AsJson = False) -> None:  # noqa: A002
    """Send the challenge to the callback URL. Only a verified URL receives events."""
    _request("POST", id, api_url, api_key, as_json, action="/verify")


@app.command("rotate-secret")
def rotate_secret(
    id: Id,  # noqa: A002
    overlap_seconds: Annotated[
        float, typer.Option(min=0, max=604_800, help="How long the old secret stays valid.")
    ] = 86_400,
    secret_file: SecretFile = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Rotate the signing secret and show the new one once. Both secrets sign until the old one expires."""
    _request(
        "POST",
        id,
        api_url,
        api_key,
        as_json,
        given(overlap_seconds=overlap_seconds, secret=read_secret(secret_file)),
        action="/rotate-secret",
    )


def _request(
    method: str,
    subscription_id: int,
    api_url: str,
    api_key: str | None,
    as_json: bool,
    content: dict[str, Any] | None = None,
    *,
    action: str = "",
) -> None:
    with connect(api_url, api_key) as client:
        answer = client.fetch(method, f"{PATH}/{subscription_id}{action}", json=content)
        subscription = client.read(answer)
    if as_json:
        show_json(answer)
    else:
        show_fields(shown(subscription))
        offer_missed_deliveries(subscription)
