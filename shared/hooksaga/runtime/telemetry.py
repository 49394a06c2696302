"""The process's logger and its metrics. What the stages and operations report through them is in their folders.

Payloads, secrets, keys, and the path and query of callback URLs are never logged. JSON escapes control characters, so
one entry is one line. The keys of the lines are in log_lines.py, the names of the metrics in metrics.py.
"""

import os
import sys
from collections.abc import Sequence

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


def measure_with(metrics: Metrics) -> None:
    """Set where this process counts. A process has one log and one set of metrics."""
    global _metrics
    _metrics = metrics


def count(metric: Metric, many: int, error_class: ErrorClass | None = None) -> None:
    _metrics.count(metric, many, error_class)


def observe(metric: Metric, values: Sequence[float]) -> None:
    _metrics.observe(metric, values)


def note_migration_waits(wait: str) -> None:
    """Log which sessions hold a lock that a migration needs."""
    logger.warning("migration waits", extra={"reason": wait})
