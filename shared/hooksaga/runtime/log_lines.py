"""The canonical log lines: one per attempt, routed event, saga transition and lost lease.

They are most of the log, so they are written in batches that bypass the logger's slow formatting, to the same stream,
in the same JSON. A key has the same meaning in every line:

- event_id, saga_id, job_id, subscription_id: the public event id, and row ids.
- correlation_id: the trace id of the event. Lease resets have none, because the lease cleaner may read jobs only; the
  saga's other lines have it.
- span_id: the parent id in the `traceparent` that the endpoint gets.
- lease_expiration: when the worker's lease ends or ended.
"""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec
from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter


class AttemptLine(msgspec.Struct, omit_defaults=True):
    """One POST and its outcome."""

    job_id: int
    saga_id: int
    event_id: str
    subscription_id: int
    correlation_id: str
    span_id: str
    attempt: int
    claim: int
    status: str
    duration_ms: int
    worker_id: str
    lease_expiration: datetime
    response_status: int | None = None
    error_code: str | None = None
    resolved_ip: str | None = None
    reconnected: bool = False


class MismatchLine(msgspec.Struct):
    """One accepted event whose payload does not match the schema of its type, which only warns."""

    event_id: str
    correlation_id: str
    event_type: str
    pointer: str
    reason: str


class RoutedLine(msgspec.Struct):
    """One routed event, or part of one. sagas: the number of new sagas."""

    event_id: str
    correlation_id: str
    sagas: int
    routing_delay_ms: float


class MoveLine(msgspec.Struct, omit_defaults=True):
    """One saga transition. next_attempt_at is set while it waits for a retry, end_to_end_ms once it is delivered."""

    saga_id: int
    event_id: str
    subscription_id: int
    correlation_id: str
    status: str
    attempt_count: int
    previous_status: str | None = None
    job_id: int | None = None
    error_code: str | None = None
    dead_letter_id: int | None = None
    next_attempt_at: datetime | None = None
    worker_id: str | None = None
    end_to_end_ms: float | None = None


class ResetLine(msgspec.Struct, omit_defaults=True):
    """One lease that ended before its worker wrote a result."""

    job_id: int
    saga_id: int
    subscription_id: int
    status: str
    claim: int
    lease_expiration: datetime
    worker_id: str | None = None
    error_code: str | None = None


class RefusedLine(msgspec.Struct, omit_defaults=True):
    """One row that the database rejected. reason names the rule, never a value."""

    reason: str
    saga_id: int | None = None
    job_id: int | None = None
    subscription_id: int | None = None
    dead_letter_id: int | None = None
    bulk_operation_id: int | None = None
    event_id: str | None = None
    correlation_id: str | None = None


class Entry(NamedTuple):
    """level: a level of `logging`."""

    level: int
    message: str
    line: AttemptLine | MismatchLine | RoutedLine | MoveLine | ResetLine | RefusedLine


class _Ready(str):
    __slots__ = ()


class LineFormatter(LambdaPowertoolsFormatter):
    """Powertools' formatter, which passes formatted lines through, so that they share its handler, stream and lock."""

    def format(self, record: logging.LogRecord) -> str:
        return record.msg if isinstance(record.msg, _Ready) else super().format(record)

    def head(self, level: int, message: str) -> bytes:
        """Return the common part of log lines at this time, appended keys included, without the last brace."""
        record = logging.LogRecord("", level, "", 0, message, None, None)
        common = {
            "level": logging.getLevelName(level),
            "message": message,
            "timestamp": self.formatTime(record),
            **{name: value for name, value in self.log_format.items() if name not in self.log_record_order},
            "xray_trace_id": self._get_latest_trace_id(),
        }
        return _encode({name: value for name, value in common.items() if value is not None})[:-1]


_encode = msgspec.json.Encoder().encode


def write_lines(logger: Logger, entries: Iterable[Entry]) -> None:
    """Write the entries at or above the logger's level at once. Never raises for a closed stream."""
    threshold = logger.log_level
    heads: dict[tuple[int, str], bytes] = {}
    lines: list[bytes] = []
    formatter = logger.registered_formatter
    assert isinstance(formatter, LineFormatter)
    for level, message, line in entries:
        if level < threshold:
            continue
        if (kind := (level, message)) not in heads:
            heads[kind] = formatter.head(level, message)
        lines.append(heads[kind] + b"," + _encode(line)[1:])
    if lines:
        write_text(logger, b"\n".join(lines))


def write_text(logger: Logger, text: bytes) -> None:
    """Write complete lines of the log, without the end of the last one. Never raises for a closed stream."""
    ready = _Ready(text.decode(errors="replace"))
    logger.registered_handler.handle(logging.makeLogRecord({"msg": ready}))
