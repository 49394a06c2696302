"""Options of `hooksaga subscriptions create` and `update`."""

import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from hooksaga.cli.failures import WrongUse

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The subscription's number.")]
_EVENT_TYPE = typer.Option(
    "--event-type",
    help="Event type, e.g. order.created, a prefix such as 'invoice.*', or '*'; repeatable.",
    show_default=False,
)
NewEventTypes = Annotated[list[str], _EVENT_TYPE]
EventTypes = Annotated[list[str] | None, _EVENT_TYPE]
Filter = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Only events whose attributes match, such as \'{"country": ["DE", "AT"]}\'.',
        show_default=False,
    ),
]


class Format(StrEnum):
    """What a delivery carries."""

    PAYLOAD = "payload"
    STRUCTURED = "cloudevents-structured"
    BINARY = "cloudevents-binary"


@dataclass(frozen=True)
class SubscriptionFields:
    """Options of `create` and of `update`, named as the fields of the API."""

    filter: Filter = None
    description: Annotated[str | None, typer.Option(help="Description.", show_default=False)] = None
    max_retry_limit: Annotated[
        int | None, typer.Option(help="Maximum number of attempts, 1 to 50.", show_default=False)
    ] = None
    base_delay_seconds: Annotated[
        float | None, typer.Option(help="Delay before the first retry.", show_default=False)
    ] = None
    timeout_seconds: Annotated[
        float | None, typer.Option(help="Timeout of an attempt, 1 to 30.", show_default=False)
    ] = None
    max_in_flight: Annotated[
        int | None, typer.Option(help="Limit of deliveries in flight, 1 to 1,000.", show_default=False)
    ] = None
    rate_limit: Annotated[
        str | None,
        typer.Option(
            metavar="COUNT/SECONDS", help="Limit of attempts per time, e.g. 50/1.", show_default=False
        ),
    ] = None
    ordered: Annotated[
        bool | None,
        typer.Option(
            "--ordered/--unordered",
            help="Deliver the events of an ordering key one at a time, in their order.",
            show_default=False,
        ),
    ] = None
    max_wait_seconds: Annotated[
        float | None,
        typer.Option(
            help="Longest time that a delivery may be overdue, 60 to 2,592,000.", show_default=False
        ),
    ] = None
    circuit_breaker: Annotated[
        bool | None,
        typer.Option(
            "--circuit-breaker/--no-circuit-breaker",
            help="Stop deliveries after 10 failures in a row until one succeeds.",
            show_default=False,
        ),
    ] = None
    format: Annotated[
        Format | None,
        typer.Option("--format", help="Send the payload alone, or as a CloudEvent.", show_default=False),
    ] = None
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="NAME=VALUE", help="Custom header; repeatable.", show_default=False),
    ] = None

    def content(self) -> dict[str, Any]:
        """Return the given fields as the API takes them. Raises WrongUse."""
        return given(
            **vars(self)
            | {
                "filter": read_filter(self.filter),
                "rate_limit": _read_rate_limit(self.rate_limit),
                "headers": _read_headers(self.headers),
            }
        )


SecretFile = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="File with your own signing secret, whsec_ and base64; - reads stdin.",
        show_default="a random secret",
    ),
]


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _read_headers(options: list[str] | None) -> dict[str, str] | None:
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


def _read_rate_limit(option: str | None) -> dict[str, float] | None:
    """Return the rate limit of `--rate-limit COUNT/SECONDS`. Raises WrongUse; the API checks the bounds."""
    if option is None:
        return None
    count, _, seconds = option.partition("/")
    try:
        return {"count": int(count), "per_seconds": float(seconds)}
    except ValueError:
        raise WrongUse(f"--rate-limit must be COUNT/SECONDS, such as 50/1, not {option!r}") from None
