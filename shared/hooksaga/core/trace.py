"""Trace context of an event, from the producer's request to the endpoint.

It is a W3C trace context. A producer's `traceparent` is stored with the event; without one the event's id is the trace
id, and nothing is stored. The trace id is the correlation_id of every log line and message. `tracestate` is dropped:
it belongs to the producer's tracing vendor, and the endpoint is another party.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_CORRELATION_ID = re.compile(r"[0-9a-f]{32}")
_INVALID_VERSION = "ff"
_VERSION = "00"
_SAMPLED = "01"
_KNOWN_FLAGS = 0b11
"""The sampled and random flags; others must not be passed on."""


class Traced(NamedTuple):
    """The id of a row in a message, and its trace id."""

    id: int
    correlation_id: str


def read_traceparent(values: Sequence[str]) -> str | None:
    """Return the producer's trace context in version 00; None if it is missing, repeated or invalid.

    A later version is parsed as version 00, as the standard requires. An invalid one never fails the request.
    """
    if len(values) != 1 or not (found := _TRACEPARENT.fullmatch(values[0].strip())):
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _INVALID_VERSION or (version == _VERSION and more):
        return None
    if not (int(trace_id, 16) and int(span_id, 16)):
        return None
    return f"{_VERSION}-{trace_id}-{span_id}-{int(flags, 16) & _KNOWN_FLAGS:02x}"


def trace_id_of(traceparent: str) -> str:
    return traceparent[3:35]


def correlation_id_of(webhook_id: UUID, traceparent: str | None) -> str:
    """Return the trace id of an event: 32 hex digits."""
    return webhook_id.hex if traceparent is None else trace_id_of(traceparent)


def is_correlation_id(text: str) -> bool:
    return _CORRELATION_ID.fullmatch(text) is not None


def span_id_of(job_id: int, claim_count: int) -> str:
    """Return the span of one POST: 16 hex digits, deterministic and never all zero."""
    digest = blake2b(b"%d:%d" % (job_id, claim_count), digest_size=8).hexdigest()
    return digest if digest.strip("0") else "0000000000000001"


def delivery_traceparent(webhook_id: UUID, traceparent: str | None, job_id: int, claim_count: int) -> str:
    """Return the receiver's traceparent: the event's trace, this POST's span, the producer's sampling flag."""
    flags = _SAMPLED if traceparent is None else traceparent[-2:]
    trace_id = correlation_id_of(webhook_id, traceparent)
    return f"{_VERSION}-{trace_id}-{span_id_of(job_id, claim_count)}-{flags}"
