"""`hooksaga subscriptions test`: send a test event to one subscription."""

import json
from typing import Annotated

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.failures import WrongUse
from hooksaga.cli.subscription_options import Id
from hooksaga.cli.terminal import echo, echo_error


def send_test(
    id: Id,  # noqa: A002
    event_type: Annotated[
        str | None,
        typer.Option(
            help="Type of the event; default: one that the subscription receives.", show_default=False
        ),
    ] = None,
    payload: Annotated[
        str | None, typer.Option(help='Payload as JSON; default: {"test": true}.', show_default=False)
    ] = None,
    *,
    api: Api,
) -> None:
    """Send a test event to this subscription only. The receiver gets it with the header hooksaga-test."""
    head = [] if event_type is None else [f'"event_type":{json.dumps(event_type)}']
    if payload is not None:
        try:
            json.loads(payload)
        except ValueError as error:
            raise WrongUse(f"--payload is not valid JSON: {error}") from None
        head.append(f'"payload":{payload}')
    body = f"{{{','.join(head)}}}".encode()
    event = api.ask("POST", f"/v1/subscriptions/{id}/test", content=body)
    echo(f"test event {event['id']} of type {event['event_type']} is accepted")
    echo_error(f"Next: hooksaga events show {event['id']}")
