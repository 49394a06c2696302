"""Public URL under which browsers reach hooksaga and with which links start (HOOKSAGA_PUBLIC_URL)."""

import re

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PORT = r"(?::[0-9]{1,5})?"
_PUBLIC_URL = re.compile(rf"https://(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:]+\]){_PORT}(?:/[A-Za-z0-9._~-]+)*")
_LOOPBACK = re.compile(rf"(?:127\.0\.0\.1|localhost|\[::1\]){_PORT}")


def checked_public_url(text: str) -> str:
    """Return the URL with lower-case scheme and host, without a trailing slash.

    Raises ValueError for anything but https://HOST[:PORT][/PATH], or http:// on this machine.
    """
    start, separator, rest = text.strip().rstrip("/").partition("://")
    host, slash, path = rest.partition("/")
    url = f"{start.lower()}{separator}{host.lower()}{slash}{path}"
    is_local = start.lower() == "http" and is_loopback(host) and not slash
    if not (is_local or _PUBLIC_URL.fullmatch(url)):
        raise ValueError("must be https://HOST, with a port and a path if need be, and nothing behind them")
    return url


def is_loopback(host: str) -> bool:
    """Return whether a Host header names the browser's own machine."""
    return _LOOPBACK.fullmatch(host.lower()) is not None


def origin_of(public_url: str) -> str:
    start, _, rest = public_url.partition("://")
    host = rest.partition("/")[0]
    default = ":443" if start == "https" else ":80"
    return f"{start}://{host.removesuffix(default)}"
