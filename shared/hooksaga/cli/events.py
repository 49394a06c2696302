"""`hooksaga events`: list, find and show events, and follow deliveries."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.event_lists import find, list_events
from hooksaga.cli.event_tree import event_tree
from hooksaga.cli.tail import tail
from hooksaga.cli.terminal import AsJson, console, show_json

app = typer.Typer(
    no_args_is_help=True, help="Events: list, find, show with their deliveries; follow deliveries."
)

app.command("list")(list_events)
app.command()(find)
app.command()(tail)


@app.command()
def show(
    event_id: Annotated[str, typer.Argument(metavar="ID", help="evt_ and 32 hex digits.")],
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Show an event with the saga of each matching subscription and all attempts."""
    from urllib.parse import quote

    with connect(api_url, api_key) as client:
        answer = client.fetch("GET", f"/v1/events/{quote(event_id, safe='')}")
        event = client.read(answer)
    if as_json:
        show_json(answer)
    else:
        console().print(event_tree(event))
