"""`hooksaga sagas`: end a delivery that waits."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.terminal import AsJson, say, show_json

app = typer.Typer(no_args_is_help=True, help="Deliveries under way: cancel one that waits.")


@app.callback()
def group() -> None:
    """Deliveries under way."""


@app.command()
def cancel(
    id: Annotated[int, typer.Argument(min=1, help="Its id, as `events show` gives it.")],  # noqa: A002
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Let no further attempt be made: it becomes a dead letter with `canceled`.

    Requeues of many leave it alone unless they name that error code; by its id it can be requeued.
    """
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/sagas/{id}/cancel")
    if as_json:
        show_json(answer)
    else:
        say(f"saga {id} gets no further attempt")
