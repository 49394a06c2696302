"""Validation of the custom headers that a subscription adds to its deliveries."""

import re
from collections.abc import Mapping

from hooksaga.core.attempts import MASK

MAX_HEADERS = 20
MAX_VALUE_LENGTH = 1024

RESERVED = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "date"}
    | {"expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer"}
    | {"traceparent", "tracestate", "transfer-encoding", "upgrade", "user-agent"}
)
RESERVED_PREFIXES = ("webhook-", "hooksaga-")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def check_custom_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with lower-case names.

    Raises ValueError that names the header and the rule. Names are compared without letter case; values are
    printable ASCII with no blank at either end, because no other form arrives everywhere as it was sent.
    """
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"at most {MAX_HEADERS} headers are allowed, not {len(headers)}")
    checked = {_checked_name(name): _checked_value(name, value) for name, value in headers.items()}
    if len(checked) < len(headers):
        raise ValueError("a header name is given twice, in different letter case")
    return checked


def check_header_changes(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Changes by lower-case names: a value to set, None to remove it, or MASK to keep it.

    Raises ValueError as check_custom_headers does, but for how many there are: that depends on those that stay.
    """
    checked = {_checked_name(name): _checked_change(name, value) for name, value in changes.items()}
    if len(checked) < len(changes):
        raise ValueError("a header name is given twice, in different letter case")
    return checked


def _checked_change(name: str, value: str | None) -> str | None:
    return value if value is None or value == MASK else _checked_value(name, value)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no header name: 1 to 100 letters, digits or !#$%&'*+.^_`|~-")
    lower = name.lower()
    if lower in RESERVED or lower.startswith(RESERVED_PREFIXES):
        raise ValueError(f"{lower} is set by hooksaga and cannot be replaced")
    return lower


def _checked_value(name: str, value: str) -> str:
    if value == MASK:
        raise ValueError(f"{MASK} stands for a value that is not shown; give {name.lower()} one of its own")
    if len(value) > MAX_VALUE_LENGTH or not _VALUE.fullmatch(value):
        raise ValueError(
            f"the value of {name.lower()} must be 1 to {MAX_VALUE_LENGTH} printable ASCII characters "
            "that begin and end with no blank"
        )
    return value
