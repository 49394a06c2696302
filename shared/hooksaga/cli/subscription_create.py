"""`hooksaga subscriptions create`."""

from typing import Annotated, Any

import typer

from hooksaga.cli.api_access import DEFAULT_URL, ApiKey, ApiUrl, connect
from hooksaga.cli.subscription_options import (
    BaseDelay,
    CircuitBreaker,
    DeliveryFormat,
    Description,
    Filter,
    Headers,
    MaxInFlight,
    MaxRetryLimit,
    MaxWait,
    NewEventTypes,
    NewTenant,
    Ordered,
    RateLimit,
    SecretFile,
    Timeout,
    Verified,
    VerifiedReason,
    given,
    read_filter,
    read_headers,
    read_rate_limit,
    read_secret,
)
from hooksaga.cli.subscription_view import shown
from hooksaga.cli.terminal import AsJson, echo_error, show_fields, show_json


def create(
    event_type: NewEventTypes,
    callback_url: Annotated[str, typer.Option(help="https:// URL of the endpoint.")],
    filter: Filter = None,  # noqa: A002
    description: Description = None,
    tenant_id: NewTenant = None,
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
    secret_file: SecretFile = None,
    verified: Verified = None,
    verified_reason: VerifiedReason = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Create the subscription inactive.")] = False,
    api_url: ApiUrl = DEFAULT_URL,
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Create a subscription and show its signing secret once. It receives events after it is verified."""
    wanted = given(
        event_types=event_type,
        callback_url=callback_url,
        filter=read_filter(filter),
        description=description,
        tenant_id=tenant_id,
        max_retry_limit=max_retry_limit,
        base_delay_seconds=base_delay_seconds,
        timeout_seconds=timeout_seconds,
        max_in_flight=max_in_flight,
        rate_limit=read_rate_limit(rate_limit),
        ordered=ordered,
        max_wait_seconds=max_wait_seconds,
        circuit_breaker=circuit_breaker,
        format=delivery_format,
        headers=read_headers(header),
        active=False if inactive else None,
        secret=read_secret(secret_file),
        verified=verified,
        verified_reason=verified_reason,
    )
    with connect(api_url, api_key) as client:
        answer = client.fetch("POST", "/v1/subscriptions", json=wanted)
        created = client.read(answer)
    _show_created(answer, created, as_json)


def _show_created(answer: bytes, created: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(answer)
        return
    show_fields(shown(created) | {"secret": created["secret"]})
    echo_error("The secret is not shown again: store it in the receiver, which verifies signatures with it.")
    send, verify = f"send - --event-type {created['event_type']}", f"subscriptions verify {created['id']}"
    echo_error(f"Next: hooksaga {send if created['verified'] else verify}")
