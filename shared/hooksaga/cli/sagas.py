"""`hooksaga sagas`: cancel a waiting delivery."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.terminal import AsJson, echo, show_json

app = typer.Typer(no_args_is_help=True, help="Deliveries in progress: cancel a waiting delivery.")


@app.callback()
def group() -> None:
    """Deliveries in progress."""


@app.command()
def cancel(
    id: Annotated[int, typer.Argument(min=1, help="Id of the saga, as shown by `events show`.")],  # noqa: A002
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a waiting delivery. It becomes a dead letter with the error code `canceled`.

    Bulk requeues exclude it unless they name that error code. It can be requeued by its id.
    """
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", f"/v1/sagas/{id}/cancel")
    if as_json:
        show_json(answer)
    else:
        echo(f"saga {id} is canceled: it gets no further attempt")
