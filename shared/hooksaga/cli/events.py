"""`hooksaga events`: list, find and show events, and follow deliveries."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.event_lists import find, list_events
from hooksaga.cli.event_tree import event_tree
from hooksaga.cli.option_groups import Commands
from hooksaga.cli.tail import tail
from hooksaga.cli.terminal import console

app = Commands(
    no_args_is_help=True, help="Events: list, find, show with their deliveries; follow deliveries."
)

app.command("list")(list_events)
app.command()(find)
app.command()(tail)


@app.command()
def show(
    event_id: Annotated[str, typer.Argument(metavar="ID", help="evt_ and 32 hex digits.")],
    *,
    api: Api,
) -> None:
    """Show an event with the saga of each matching subscription and all attempts."""
    from urllib.parse import quote

    console().print(event_tree(api.ask("GET", f"/v1/events/{quote(event_id, safe='')}")))
