"""Error codes of attempts.

A failed job has one in error_code; final_error_code of a saga and of a dead letter is that of the last attempt. They
are part of the API: alarms, filters and requeues use them.
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Error codes except `http_<status>`, which http_error() returns."""

    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_TOTAL = "timeout_total"
    DNS_NXDOMAIN = "dns_nxdomain"
    DNS_ERROR = "dns_error"
    TLS_ERROR = "tls_error"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_RESET = "connection_reset"
    ADDRESS_BLOCKED = "address_blocked"
    INVALID_URL = "invalid_url"
    PROTOCOL_ERROR = "protocol_error"
    LEASE_EXPIRED = "lease_expired"
    SUBSCRIPTION_INACTIVE = "subscription_inactive"
    CANCELED = "canceled"
    DISCARDED = "discarded"
    EXPIRED = "expired"
    ERASED = "erased"
    INTERNAL_ERROR = "internal_error"


class ErrorClass(StrEnum):
    """Classes of error codes for metrics. Each class is a time series, so their number must stay small."""

    HTTP_4XX = "http_4xx"
    HTTP_5XX = "http_5xx"
    TIMEOUT = "timeout"
    DNS = "dns"
    TLS = "tls"
    CONNECTION = "connection"
    BLOCKED = "blocked"
    OTHER = "other"


_CLASSES: dict[str, ErrorClass] = {
    ErrorCode.TIMEOUT_CONNECT: ErrorClass.TIMEOUT,
    ErrorCode.TIMEOUT_TOTAL: ErrorClass.TIMEOUT,
    ErrorCode.DNS_NXDOMAIN: ErrorClass.DNS,
    ErrorCode.DNS_ERROR: ErrorClass.DNS,
    ErrorCode.TLS_ERROR: ErrorClass.TLS,
    ErrorCode.CONNECTION_REFUSED: ErrorClass.CONNECTION,
    ErrorCode.CONNECTION_RESET: ErrorClass.CONNECTION,
    ErrorCode.ADDRESS_BLOCKED: ErrorClass.BLOCKED,
}


def error_class_of(error_code: str) -> ErrorClass:
    """Return the class of an error code; codes without a class, such as redirects, are `other`."""
    if error_code.startswith("http_4"):
        return ErrorClass.HTTP_4XX
    if error_code.startswith("http_5"):
        return ErrorClass.HTTP_5XX
    return _CLASSES.get(error_code, ErrorClass.OTHER)


NO_PUBLIC_ADDRESS = "no_public_address"
"""Code that subscribers see instead of codes that would reveal names inside the network."""

INSIDE_CODES = frozenset({ErrorCode.ADDRESS_BLOCKED, ErrorCode.DNS_NXDOMAIN, ErrorCode.DNS_ERROR})
"""Codes that reveal what this network's DNS returns. Only operators see them."""


def subscriber_error_code(error_code: str | None) -> str | None:
    """Return the code that subscribers see: the same one for a refused address, a missing name and a failed lookup."""
    return NO_PUBLIC_ADDRESS if error_code in INSIDE_CODES else error_code


UNCOUNTED = (
    ErrorCode.LEASE_EXPIRED,
    ErrorCode.SUBSCRIPTION_INACTIVE,
    ErrorCode.CANCELED,
    ErrorCode.DISCARDED,
    ErrorCode.EXPIRED,
    ErrorCode.ERASED,
    ErrorCode.INTERNAL_ERROR,
)
"""Codes that say nothing about the endpoint: the worker died, nothing was sent, or an internal error."""


def http_error(status: int) -> str:
    return f"http_{status}"


def is_success(status: int) -> bool:
    """Return True for 200 to 299 only; a redirect is a failure."""
    return 200 <= status <= 299


GONE = http_error(410)
"""The endpoint permanently refuses deliveries."""
