"""`hooksaga subscriptions create`."""

from typing import Annotated

import typer

from hooksaga.cli.api_access import Api
from hooksaga.cli.subscription_options import (
    NewEventTypes,
    SecretFile,
    SubscriptionFields,
    given,
    read_secret,
)
from hooksaga.cli.subscription_view import shown
from hooksaga.cli.terminal import echo_error, show_fields


def create(
    event_type: NewEventTypes,
    callback_url: Annotated[str, typer.Option(help="https:// URL of the endpoint.")],
    tenant_id: Annotated[
        str | None, typer.Option(help="Tenant of the events.", show_default="default")
    ] = None,
    *,
    fields: SubscriptionFields,
    secret_file: SecretFile = None,
    verified: Annotated[
        bool | None,
        typer.Option(
            "--verified",
            help="Vouch for the URL, without a challenge. Needs the scope subscriptions:verify.",
            show_default=False,
        ),
    ] = None,
    verified_reason: Annotated[
        str | None, typer.Option(help="Why you vouch for it, for the record.", show_default=False)
    ] = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Create the subscription inactive.")] = False,
    api: Api,
) -> None:
    """Create a subscription and show its signing secret once. It receives events after it is verified."""
    more = given(
        event_types=event_type,
        callback_url=callback_url,
        tenant_id=tenant_id,
        active=False if inactive else None,
        secret=read_secret(secret_file),
        verified=verified,
        verified_reason=verified_reason,
    )
    created = api.ask("POST", "/v1/subscriptions", json=fields.content() | more)
    show_fields(shown(created) | {"secret": created["secret"]})
    echo_error("The secret is not shown again: store it in the receiver, which verifies signatures with it.")
    if created["verified"]:
        echo_error(f"Next: hooksaga subscriptions test {created['id']}")
        return
    echo_error(f"Next: hooksaga subscriptions verify {created['id']}")
    echo_error(
        "  The endpoint must answer the challenge with itself, as `hooksaga receiver` does on every path."
    )
