"""Options of all commands that use the API, and their client."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from hooksaga.cli.failures import WrongUse
from hooksaga.cli.terminal import AsJson, Columns, echo_error, show_items, show_json

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

DEFAULT_URL = "http://127.0.0.1:8080"

Tenant = Annotated[str | None, typer.Option("--tenant", help="Filter by tenant.", show_default=False)]
Subscription = Annotated[
    int | None, typer.Option("--subscription", min=1, help="Filter by subscription.", show_default=False)
]
EventType = Annotated[str | None, typer.Option(help="Filter by event type.", show_default=False)]
ErrorCode = Annotated[
    str | None, typer.Option(help="Filter by error code, e.g. http_503.", show_default=False)
]


@dataclass(frozen=True)
class Page:
    """Options of a list, named as the API's parameters."""

    limit: Annotated[int, typer.Option(min=1, max=250)] = 50
    cursor: Annotated[
        str | None, typer.Option(help="Cursor of the next page, from the previous page.", show_default=False)
    ] = None


@dataclass(frozen=True)
class ApiAccess:
    """The API that a command uses."""

    api_url: Annotated[
        str, typer.Option("--api-url", envvar="HOOKSAGA_API_URL", help="URL of the API.", show_default=True)
    ] = DEFAULT_URL
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            envvar="HOOKSAGA_API_KEY",
            help="API key. Default on this machine: the key that `hooksaga up` stores.",
            show_default=False,
        ),
    ] = None

    def connect(self) -> "ApiClient":
        """Create a client. Raises WrongUse for an invalid URL, or without a usable
        key."""
        from hooksaga.local.api_client import ApiClient

        url = self.api_url
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise WrongUse(f"--api-url (HOOKSAGA_API_URL) must be a URL such as {DEFAULT_URL}, not {url!r}")
        used = self.api_key or _kept_key(url)
        if not (used.isascii() and used.isprintable()):
            raise WrongUse("--api-key (HOOKSAGA_API_KEY) contains characters that are not allowed in a key")
        return ApiClient(url, used)


@dataclass(frozen=True)
class Api(ApiAccess):
    """The API that a command uses, and the form of the output."""

    as_json: AsJson = False

    def ask(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Return the answer to one request; arguments as in `ApiClient.fetch`. With --json, print the answer unchanged
        and end the command."""
        client = self.connect()
        answer = client.fetch(method, path, **request)
        content = client.read(answer)
        if self.as_json:
            show_json(answer)
            raise typer.Exit
        return content

    def show_list(
        self,
        path: str,
        wanted: Mapping[str, Any],
        columns: Columns,
    ) -> None:
        """Print a page of a list as a table. wanted: parameters of the request; None is no filter."""
        page = self.ask("GET", path, params=wanted)
        show_items(columns, page["items"])
        if page["next"]:
            echo_error(f"More results: --cursor {page['next']}")


def _kept_key(url: str) -> str:
    """Return the key in the data folder, for APIs on this machine only: no other host ever receives it.

    Reads the one setting that it needs: checking all of them takes longer than the rest of a command.
    """
    if not _is_this_machine(url):
        raise WrongUse("this API requires a key: pass --api-key, or set HOOKSAGA_API_KEY")
    path = Path(os.environ.get("HOOKSAGA_DATA_DIR") or ".hooksaga", "api_key").absolute()
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise WrongUse(
            f"{path} contains no key: start `hooksaga up` in this folder, pass --api-key, "
            "or set HOOKSAGA_API_KEY"
        ) from None


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
