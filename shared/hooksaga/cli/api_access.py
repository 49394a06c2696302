"""Options of all commands that use the API, and their client."""

import ipaddress
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from hooksaga.cli.failures import WrongUse

if TYPE_CHECKING:
    from hooksaga.local.api_client import ApiClient

DEFAULT_URL = "http://127.0.0.1:8080"

ApiUrl = Annotated[
    str, typer.Option("--api-url", envvar="HOOKSAGA_API_URL", help="URL of the API.", show_default=True)
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar="HOOKSAGA_API_KEY",
        help="API key. Default on this machine: the key that `hooksaga up` stores.",
        show_default=False,
    ),
]

Limit = Annotated[int, typer.Option(min=1, max=250)]
Cursor = Annotated[
    str | None, typer.Option(help="Cursor of the next page, from the previous page.", show_default=False)
]
Tenant = Annotated[str | None, typer.Option(help="Filter by tenant.", show_default=False)]


def connect(url: str, key: str | None) -> "ApiClient":
    """Create a client, which the caller must close. Raises WrongUse for an invalid URL, or without a usable key."""
    from hooksaga.local.api_client import ApiClient

    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise WrongUse(f"--api-url (HOOKSAGA_API_URL) must be a URL such as {DEFAULT_URL}, not {url!r}")
    used = key or _kept_key(url)
    if not (used.isascii() and used.isprintable()):
        raise WrongUse("--api-key (HOOKSAGA_API_KEY) contains characters that are not allowed in a key")
    return ApiClient(url, used)


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
