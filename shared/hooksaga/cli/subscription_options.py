"""Options of `hooksaga subscriptions create` and `update`."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hooksaga.cli.failures import WrongUse

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")]
NewEventTypes = Annotated[
    list[str],
    typer.Option(
        "--event-type",
        help="Event type, e.g. order.created, a prefix such as 'invoice.*', or '*'; repeatable.",
    ),
]
EventTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--event-type",
        help="Event type, e.g. order.created, a prefix such as 'invoice.*', or '*'; repeatable.",
        show_default=False,
    ),
]
CallbackUrl = Annotated[str | None, typer.Option(help="https:// URL of the endpoint.", show_default=False)]
Filter = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Only events whose attributes match, such as \'{"country": ["DE", "AT"]}\'.',
        show_default=False,
    ),
]
NewTenant = Annotated[str | None, typer.Option(help="Tenant of the events.", show_default="default")]
Description = Annotated[str | None, typer.Option(help="Description.", show_default=False)]
MaxRetryLimit = Annotated[
    int | None, typer.Option(help="Maximum number of attempts, 1 to 50.", show_default=False)
]
BaseDelay = Annotated[float | None, typer.Option(help="Delay before the first retry.", show_default=False)]
Timeout = Annotated[float | None, typer.Option(help="Timeout of an attempt, 1 to 30.", show_default=False)]
MaxInFlight = Annotated[
    int | None, typer.Option(help="Limit of deliveries in flight, 1 to 1,000.", show_default=False)
]
RateLimit = Annotated[
    str | None,
    typer.Option(metavar="COUNT/SECONDS", help="Limit of attempts per time, e.g. 50/1.", show_default=False),
]
Ordered = Annotated[
    bool | None,
    typer.Option(
        "--ordered/--unordered",
        help="Deliver the events of an ordering key one at a time, in their order.",
        show_default=False,
    ),
]
MaxWait = Annotated[
    float | None,
    typer.Option(help="Longest time that a delivery may be overdue, 60 to 2,592,000.", show_default=False),
]
CircuitBreaker = Annotated[
    bool | None,
    typer.Option(
        "--circuit-breaker/--no-circuit-breaker",
        help="Stop deliveries after 10 failures in a row until one succeeds.",
        show_default=False,
    ),
]


class Format(StrEnum):
    """What a delivery carries."""

    PAYLOAD = "payload"
    STRUCTURED = "cloudevents-structured"
    BINARY = "cloudevents-binary"


DeliveryFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Send the payload alone, or as a CloudEvent.", show_default=False),
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="Custom header; repeatable.", show_default=False),
]
RemovedHeaders = Annotated[
    list[str] | None,
    typer.Option(
        "--remove-header", metavar="NAME", help="Remove this header; repeatable.", show_default=False
    ),
]
Active = Annotated[
    bool | None, typer.Option("--active/--inactive", help="Activate or deactivate.", show_default=False)
]


SecretFile = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="File with your own signing secret, whsec_ and base64; - reads stdin.",
        show_default="a random secret",
    ),
]


Verified = Annotated[
    bool | None,
    typer.Option(
        "--verified",
        help="Vouch for the URL, without a challenge. Needs the scope subscriptions:verify.",
        show_default=False,
    ),
]
VerifiedReason = Annotated[
    str | None, typer.Option(help="Why you vouch for it, for the record.", show_default=False)
]


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


Reset = Annotated[
    list[Resettable] | None, typer.Option(help="Reset to the system's default.", show_default=False)
]


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def read_headers(options: list[str] | None) -> dict[str, str] | None:
    """Return the headers of `--header NAME=VALUE` options. Raises WrongUse."""
    if not options:
        return None
    pairs = [text.partition("=") for text in options]
    if wrong := [name for name, mark, _ in pairs if not mark or not name]:
        raise WrongUse(f"--header must be NAME=VALUE, not {wrong[0]!r}")
    return {name: value for name, _, value in pairs}


def read_filter(option: str | None) -> dict[str, Any] | None:
    """Return the filter of `--filter JSON`. Raises WrongUse if it is not JSON; the API checks its rules."""
    if option is None:
        return None
    try:
        return json.loads(option)
    except ValueError as error:
        raise WrongUse(f"--filter is not valid JSON: {error}") from None


def read_secret(path: str | None) -> str | None:
    """Return the secret in a file, or on stdin. A command line would show it to other users. Raises OSError."""
    if path is None:
        return None
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    return text.strip()


def read_rate_limit(option: str | None) -> dict[str, float] | None:
    """Return the rate limit of `--rate-limit COUNT/SECONDS`. Raises WrongUse; the API checks the bounds."""
    if option is None:
        return None
    count, _, seconds = option.partition("/")
    try:
        return {"count": int(count), "per_seconds": float(seconds)}
    except ValueError:
        raise WrongUse(f"--rate-limit must be COUNT/SECONDS, such as 50/1, not {option!r}") from None
