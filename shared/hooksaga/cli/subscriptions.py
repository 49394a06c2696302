"""`hooksaga subscriptions`: manage subscriptions."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.subscription_health import offer_missed_deliveries, show_health
from hooksaga.cli.subscription_stats import show_stats
from hooksaga.cli.terminal import AsJson, echo, echo_error, show_fields, show_json, show_table

app = typer.Typer(no_args_is_help=True, help="Subscriptions: create, list, show, change, delete.")

app.command("health")(show_health)

PATH = "/v1/subscriptions"

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")]
EventType = Annotated[str | None, typer.Option(help="Event type, e.g. order.created.", show_default=False)]
CallbackUrl = Annotated[str | None, typer.Option(help="https:// URL of the endpoint.", show_default=False)]
Description = Annotated[str | None, typer.Option(help="Description.", show_default=False)]
MaxRetryLimit = Annotated[
    int | None, typer.Option(help="Maximum number of attempts, 1 to 50.", show_default=False)
]
BaseDelay = Annotated[float | None, typer.Option(help="Delay before the first retry.", show_default=False)]
Timeout = Annotated[float | None, typer.Option(help="Timeout of an attempt, 1 to 30.", show_default=False)]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Custom header; repeatable.", show_default=False),
]


class Resettable(StrEnum):
    """Fields that can be reset to the default. A pending callback URL is dropped, and so are all headers."""

    MAX_RETRY_LIMIT = "max-retry-limit"
    BASE_DELAY_SECONDS = "base-delay-seconds"
    TIMEOUT_SECONDS = "timeout-seconds"
    PENDING_CALLBACK_URL = "pending-callback-url"
    HEADERS = "headers"


@app.command()
def create(
    event_type: Annotated[str, typer.Option(help="Event type, e.g. order.created.")],
    callback_url: Annotated[str, typer.Option(help="https:// URL of the endpoint.")],
    description: Description = None,
    tenant_id: Annotated[
        str | None, typer.Option(help="Tenant of the events.", show_default="default")
    ] = None,
    max_retry_limit: MaxRetryLimit = None,
    base_delay_seconds: BaseDelay = None,
    timeout_seconds: Timeout = None,
    header: Headers = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Create the subscription inactive.")] = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create a subscription and show its signing secret once. It receives events after it is verified."""
    wanted = _given(
        event_type=event_type,
        callback_url=callback_url,
        description=description,
        tenant_id=tenant_id,
        max_retry_limit=max_retry_limit,
        base_delay_seconds=base_delay_seconds,
        timeout_seconds=timeout_seconds,
        headers=_headers(header),
        active=False if inactive else None,
    )
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", PATH, json=wanted)
        created = client.read(answer)
    if as_json:
        show_json(answer)
        return
    show_fields(_shown(created) | {"secret": created["secret"]})
    echo_error("The secret is not shown again: store it in the receiver, which verifies signatures with it.")
    echo_error(f"Next: hooksaga subscriptions verify {created['id']}")


@app.command("list")
def list_all(
    event_type: EventType = None,
    limit: Annotated[int, typer.Option(min=1, max=250)] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Cursor of the next page, from the previous page.", show_default=False)
    ] = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """List subscriptions, newest first."""
    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", PATH, params=_given(event_type=event_type, limit=limit, cursor=cursor))
        page = client.read(answer)
    if as_json:
        show_json(answer)
        return
    rows = [(one["id"], one["event_type"], _state(one), one["callback_url"]) for one in page["items"]]
    show_table(("id", "event type", "state", "callback URL"), rows)
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
    show_fields(_shown(subscription))
    show_stats(stats)


@app.command()
def update(
    id: Id,  # noqa: A002
    event_type: EventType = None,
    callback_url: CallbackUrl = None,
    description: Description = None,
    max_retry_limit: MaxRetryLimit = None,
    base_delay_seconds: BaseDelay = None,
    timeout_seconds: Timeout = None,
    header: Headers = None,
    remove_header: Annotated[
        list[str] | None,
        typer.Option(
            "--remove-header",
            metavar="NAME",
            help="Remove this header; repeatable.",
            show_default=False,
        ),
    ] = None,
    active: Annotated[
        bool | None, typer.Option("--active/--inactive", help="Activate or deactivate.", show_default=False)
    ] = None,
    reset: Annotated[
        list[Resettable] | None, typer.Option(help="Reset to the system's default.", show_default=False)
    ] = None,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Change only the given fields and headers.

    A new callback URL of a verified subscription takes effect after `verify`; until then deliveries use the old one.
    """
    changes = _given(
        event_type=event_type,
        callback_url=callback_url,
        description=description,
        max_retry_limit=max_retry_limit,
        base_delay_seconds=base_delay_seconds,
        timeout_seconds=timeout_seconds,
        headers={**(_headers(header) or {}), **dict.fromkeys(remove_header or ())} or None,
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
        {"overlap_seconds": overlap_seconds},
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
        show_fields(_shown(subscription))
        offer_missed_deliveries(subscription)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _headers(given: list[str] | None) -> dict[str, str] | None:
    if not given:
        return None
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, mark, _ in pairs if not mark or not name]:
        raise WrongUse(f"--header must be NAME=VALUE, not {wrong[0]!r}")
    return {name: value for name, _, value in pairs}


def _state(subscription: dict[str, Any]) -> str:
    if not subscription["active"]:
        return "inactive"
    if not subscription["verified"]:
        return "not verified"
    return "new URL not verified" if subscription["pending_callback_url"] else "active"


def _shown(subscription: dict[str, Any]) -> dict[str, object]:
    subscription = {name: value for name, value in subscription.items() if name != "missed"}
    headers = subscription["headers"]
    lines = ", ".join(f"{name}={value}" for name, value in headers.items())
    return {**subscription, "headers": lines or None, "description": subscription["description"] or None}
