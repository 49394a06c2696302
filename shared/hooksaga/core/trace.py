"""Trace context of an event, from the producer's request to the receiver.

It is a W3C trace context. A producer that traces sends a `traceparent`, which is kept with the event; for all others
the event's own id is the trace id, so that nothing has to be kept. The trace id is the correlation_id of every log line
and message. `tracestate` is not taken on: it is the producer's tracing vendor's own, and receivers are strangers to it.
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
"""Sampled, and that the trace id was made at random; others must not be passed on."""


class Traced(NamedTuple):
    """The id of a row that a message names, and the trace that it belongs to."""

    id: int
    correlation_id: str


def read_traceparent(values: Sequence[str]) -> str | None:
    """The producer's trace context in the form of version 00; None for what is missing, repeated or not valid.

    A later version is read as far as this one goes, as the standard asks. No fault of it is a fault of the request.
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
    """The trace id in a trace context that was read before."""
    return traceparent[3:35]


def correlation_id_of(webhook_id: UUID, traceparent: str | None) -> str:
    """The trace id of an event: 32 hex digits."""
    return webhook_id.hex if traceparent is None else trace_id_of(traceparent)


def is_correlation_id(text: str) -> bool:
    """Return whether the text has the form of a trace id."""
    return _CORRELATION_ID.fullmatch(text) is not None


def span_id_of(job_id: int, claim_count: int) -> str:
    """The span of one POST: 16 hex digits, the same whenever it is asked for, and never all zero."""
    digest = blake2b(b"%d:%d" % (job_id, claim_count), digest_size=8).hexdigest()
    return digest if digest.strip("0") else "0000000000000001"


def delivery_traceparent(webhook_id: UUID, traceparent: str | None, job_id: int, claim_count: int) -> str:
    """Return the receiver's traceparent: the event's trace, this POST's span, the producer's sampling flag."""
    flags = _SAMPLED if traceparent is None else traceparent[-2:]
    trace_id = correlation_id_of(webhook_id, traceparent)
    return f"{_VERSION}-{trace_id}-{span_id_of(job_id, claim_count)}-{flags}"
