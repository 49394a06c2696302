"""`hooksaga explain`: why a subscription did or did not receive an event."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.terminal import console, echo_error, show_json

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

PAGE = 250


def explain(
    event_id: Annotated[str, typer.Argument(metavar="ID", help="evt_ and 32 hex digits.")],
    every: Annotated[bool, typer.Option("--all", help="Include subscriptions to other event types.")] = False,
    *,
    api: Api,
) -> None:
    """Explain for each subscription whether an event matched it, why not, and the state of its delivery."""
    client = api.connect()
    event = _read(client, event_id, every)
    if api.as_json:
        show_json(event)
        return
    from hooksaga.cli.explanation import explanation

    for line in explanation(event, every=every):
        console().print(line, soft_wrap=True)
    if event["routing"]["next"]:
        echo_error(
            f"Only {len(event['routing']['decisions'])} subscriptions are shown: use --all for the rest."
        )


def _read(client: "ApiClient", event_id: str, every: bool) -> dict[str, Any]:
    """Return the first page, or all pages as one."""
    pages = _pages(client, event_id)
    event = next(pages)
    if every:
        for page in pages:
            event["routing"]["decisions"] += page["routing"]["decisions"]
        event["routing"]["next"] = None
    return event


def _pages(client: "ApiClient", event_id: str) -> Iterator[dict[str, Any]]:
    from urllib.parse import quote

    path, cursor = f"/v1/events/{quote(event_id, safe='')}/routing", None
    while True:
        page = client.call("GET", path, params={"limit": PAGE, "cursor": cursor})
        cursor = page["routing"]["next"]
        yield page
        if cursor is None:
            return
