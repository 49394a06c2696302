"""The trace that a request belongs to, where its caller says so in a way that can be read."""

from starlette.requests import Request

from hooksaga.core.trace import read_traceparent, trace_id_of


def traceparent_of(request: Request) -> str | None:
    """The caller's trace context, checked."""
    return read_traceparent(request.headers.getlist("traceparent"))


def correlation_id_of_request(request: Request) -> str | None:
    """Its trace id, for the log."""
    traceparent = traceparent_of(request)
    return None if traceparent is None else trace_id_of(traceparent)
