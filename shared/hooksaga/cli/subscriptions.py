"""`hooksaga subscriptions`: manage subscriptions."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import Api, Page, Tenant
from hooksaga.cli.backfill import backfill
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.subscription_create import create
from hooksaga.cli.subscription_flow import pause, resume, retry_now, show_flow
from hooksaga.cli.subscription_health import offer_missed_deliveries, show_health
from hooksaga.cli.subscription_match import match
from hooksaga.cli.subscription_options import (
    EventTypes,
    Id,
    SecretFile,
    SubscriptionFields,
    given,
    read_secret,
)
from hooksaga.cli.subscription_stats import show_stats
from hooksaga.cli.subscription_test import send_test
from hooksaga.cli.subscription_view import health_of, shown, state_of
from hooksaga.cli.terminal import Columns, echo, echo_error, show_fields, show_json
from hooksaga.core.event_patterns import shown_event_types

app = Commands(no_args_is_help=True, help="Subscriptions: create, list, show, change, delete.")

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


_COLUMNS: Columns = {
    "id": "id",
    "tenant": "tenant_id",
    "event types": lambda one: shown_event_types(one["event_types"]),
    "state": state_of,
    "health": lambda one: health_of(one["health"]),
    "callback URL": "callback_url",
}


@app.command("list")
def list_all(
    tenant_id: Tenant = None,
    event_type: Annotated[
        str | None, typer.Option(help="Only those that receive this event type.", show_default=False)
    ] = None,
    *,
    page: Page,
    api: Api,
) -> None:
    """List subscriptions with the health of their endpoints, newest first."""
    api.show_list(PATH, {"tenant_id": tenant_id, "event_type": event_type, **vars(page)}, _COLUMNS)


class Window(StrEnum):
    """Time window of the statistics in `show`."""

    HOUR = "1h"
    DAY = "24h"


@app.command()
def show(
    id: Id,  # noqa: A002
    window: Annotated[Window, typer.Option(help="Time window of the statistics.")] = Window.DAY,
    *,
    api: Api,
) -> None:
    """Show one subscription with its statistics: success rate, latency, last error, backlog."""
    client = api.connect()
    subscription = client.call("GET", f"{PATH}/{id}")
    stats = client.call("GET", f"{PATH}/{id}/stats", params={"window": window.value})
    if api.as_json:
        show_json({**subscription, "stats": stats})
        return
    show_fields(shown(subscription))
    show_stats(stats)


class Resettable(StrEnum):
    """Fields that can be reset to the default. A pending URL is dropped, and so are all headers, and the filter."""

    MAX_RETRY_LIMIT = "max-retry-limit"
    BASE_DELAY_SECONDS = "base-delay-seconds"
    TIMEOUT_SECONDS = "timeout-seconds"
    MAX_IN_FLIGHT = "max-in-flight"
    RATE_LIMIT = "rate-limit"
    MAX_WAIT_SECONDS = "max-wait-seconds"
    PENDING_CALLBACK_URL = "pending-callback-url"
    HEADERS = "headers"
    FILTER = "filter"


@app.command()
def update(
    id: Id,  # noqa: A002
    event_types: EventTypes = None,
    callback_url: Annotated[
        str | None, typer.Option(help="https:// URL of the endpoint.", show_default=False)
    ] = None,
    *,
    fields: SubscriptionFields,
    remove_header: Annotated[
        list[str] | None,
        typer.Option(
            "--remove-header", metavar="NAME", help="Remove this header; repeatable.", show_default=False
        ),
    ] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Activate or deactivate.", show_default=False)
    ] = None,
    reset: Annotated[
        list[Resettable] | None, typer.Option(help="Reset to the system's default.", show_default=False)
    ] = None,
    api: Api,
) -> None:
    """Change only the given fields and headers.

    A new callback URL of a verified subscription takes effect after `verify`; until then deliveries use the old one.
    """
    changes = fields.content() | given(event_types=event_types, callback_url=callback_url, active=active)
    if remove_header:
        changes["headers"] = {**changes.get("headers", {}), **dict.fromkeys(remove_header)}
    changes |= {one.name.lower(): None for one in reset or ()}
    if not changes:
        raise WrongUse(
            "nothing to change: pass at least one option, see `hooksaga subscriptions update --help`"
        )
    _show_changed(api.ask("PATCH", f"{PATH}/{id}", json=changes))


@app.command()
def delete(id: Id, *, api: Api) -> None:  # noqa: A002
    """Delete a subscription permanently. Its history is kept."""
    api.ask("DELETE", f"{PATH}/{id}")
    echo(f"subscription {id} is deleted and receives no more events")


@app.command()
def verify(id: Id, *, api: Api) -> None:  # noqa: A002
    """Send the challenge to the callback URL. Only a verified URL receives events."""
    _show_changed(api.ask("POST", f"{PATH}/{id}/verify"))
    echo_error(f"Next: hooksaga subscriptions test {id}")


@app.command("rotate-secret")
def rotate_secret(
    id: Id,  # noqa: A002
    overlap_seconds: Annotated[
        float, typer.Option(min=0, max=604_800, help="How long the old secret stays valid.")
    ] = 86_400,
    secret_file: SecretFile = None,
    *,
    api: Api,
) -> None:
    """Rotate the signing secret and show the new one once. Both secrets sign until the old one expires."""
    wanted = given(overlap_seconds=overlap_seconds, secret=read_secret(secret_file))
    _show_changed(api.ask("POST", f"{PATH}/{id}/rotate-secret", json=wanted))


def _show_changed(subscription: dict[str, Any]) -> None:
    show_fields(shown(subscription))
    offer_missed_deliveries(subscription)
