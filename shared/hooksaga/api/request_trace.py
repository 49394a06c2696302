"""Trace of a request, if its caller sent a valid trace context."""

from starlette.requests import Request

from hooksaga.core.trace import read_traceparent, trace_id_of


def traceparent_of(request: Request) -> str | None:
    """Return the caller's validated trace context."""
    return read_traceparent(request.headers.getlist("traceparent"))


def correlation_id_of_request(request: Request) -> str | None:
    """Return the trace id of the request, for the log."""
    traceparent = traceparent_of(request)
    return None if traceparent is None else trace_id_of(traceparent)
