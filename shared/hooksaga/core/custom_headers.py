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
RESERVED_PREFIXES = ("webhook-", "hooksaga-", "ce-")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def check_custom_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with lower-case names.

    Raises ValueError with the header and the rule. Names are case-insensitive; values must be printable ASCII without
    surrounding spaces, the only form that every server passes on unchanged.
    """
    if len(headers) > MAX_HEADERS:
        raise ValueError(f"at most {MAX_HEADERS} headers are allowed, not {len(headers)}")
    checked = {_checked_name(name): _checked_value(name, value) for name, value in headers.items()}
    if len(checked) < len(headers):
        raise ValueError("a header name occurs twice in different case")
    return checked


def check_header_changes(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return changes by lower-case names: a value sets a header, None removes it, MASK keeps it.

    Raises ValueError as check_custom_headers does, except for the number of headers, which depends on the others.
    """
    checked = {_checked_name(name): _checked_change(name, value) for name, value in changes.items()}
    if len(checked) < len(changes):
        raise ValueError("a header name occurs twice in different case")
    return checked


def _checked_change(name: str, value: str | None) -> str | None:
    return value if value is None or value == MASK else _checked_value(name, value)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a header name: use 1 to 100 letters, digits or !#$%&'*+.^_`|~-")
    lower = name.lower()
    if lower in RESERVED or lower.startswith(RESERVED_PREFIXES):
        raise ValueError(f"{lower} is set by hooksaga and cannot be replaced")
    return lower


def _checked_value(name: str, value: str) -> str:
    if value == MASK:
        raise ValueError(f"the value of {name.lower()} must not be {MASK}, which masks stored values")
    if len(value) > MAX_VALUE_LENGTH or not _VALUE.fullmatch(value):
        raise ValueError(
            f"the value of {name.lower()} must be 1 to {MAX_VALUE_LENGTH} printable ASCII characters "
            "without surrounding spaces"
        )
    return value
