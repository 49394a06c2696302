"""The process's logger and its metrics. What the stages and operations report through them is in their folders.

Payloads, secrets, keys, and the path and query of callback URLs are never logged. JSON escapes control characters, so
one entry is one line. The keys of the lines are in log_lines.py, the names of the metrics in metrics.py.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from aws_lambda_powertools import Logger

from hooksaga.core.outcomes import ErrorClass
from hooksaga.runtime.log_lines import LineFormatter
from hooksaga.runtime.metrics import Metric, Metrics, NotMeasured

logger = Logger(
    service="hooksaga",
    level=os.environ.get("HOOKSAGA_LOG_LEVEL", "INFO"),
    stream=sys.stderr,
    logger_formatter=LineFormatter(utc=True),
)

_metrics: Metrics = NotMeasured()


class LogStream(Protocol):
    """What the handler of the log writes to: whole lines."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> None: ...


def measure_with(metrics: Metrics) -> None:
    """Set where this process counts. A process has one log and one set of metrics."""
    global _metrics
    _metrics = metrics


def write_log_to(stream: LogStream) -> None:
    """Write the log to a stream instead of standard error."""
    handler = logger.registered_handler
    assert isinstance(handler, logging.StreamHandler)
    cast("logging.StreamHandler[LogStream]", handler).setStream(stream)


def count(metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
    _metrics.count(metric, many, error_class)


def observe(metric: Metric, values: Sequence[float]) -> None:
    _metrics.observe(metric, values)


def note_migration_waits(wait: str) -> None:
    """Log which sessions hold a lock that a migration needs."""
    logger.warning("migration waits", extra={"reason": wait})
