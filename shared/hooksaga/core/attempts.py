"""Trigger and request headers of an attempt, as the attempt log shows them.

Pure. Secrets never reach this module: it knows only the names of the signature and of custom headers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MASK = "***"
"""Placeholder of a secret value."""


class AttemptTrigger(StrEnum):
    """Reason for an attempt. A retry is `retry` for every kind of saga."""

    FIRST = "first"
    RETRY = "retry"
    REQUEUE = "requeue"
    BACKFILL = "backfill"


class Outcome(StrEnum):
    """Outcome of an attempt, as a filter of the log."""

    COMPLETED = "completed"
    FAILED = "failed"


class StatusClass(StrEnum):
    """Class of a response status. NONE: no HTTP response arrived."""

    INFORMATIONAL = "1xx"
    SUCCESS = "2xx"
    REDIRECTION = "3xx"
    CLIENT_ERROR = "4xx"
    SERVER_ERROR = "5xx"
    NONE = "none"

    @property
    def digit(self) -> int:
        """Return the first digit of the statuses, 0 for NONE, as in the database's index."""
        return 0 if self is StatusClass.NONE else int(self.value[0])


@dataclass(frozen=True, slots=True)
class SentHeaders:
    """Request headers that cannot be derived afterwards. webhook_timestamp: Unix seconds."""

    webhook_timestamp: int
    own_names: Sequence[str] = ()


def trigger_of(
    attempt_number: int, *, requeued_from: int | None, bulk_operation_id: int | None
) -> AttemptTrigger:
    """Return the trigger of an attempt. A requeue by a bulk operation also names the dead letter."""
    if attempt_number > 1:
        return AttemptTrigger.RETRY
    if requeued_from is not None:
        return AttemptTrigger.REQUEUE
    return AttemptTrigger.FIRST if bulk_operation_id is None else AttemptTrigger.BACKFILL


def masked_headers(
    sent: SentHeaders, *, webhook_id: str, event_type: str, attempt_number: int, traceparent: str
) -> dict[str, str]:
    """Return the request headers as sent, in order, with secrets masked.

    The user-agent is omitted: it contained the version at that time, which is not stored.
    """
    return {
        "content-type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(sent.webhook_timestamp),
        "webhook-signature": MASK,
        "hooksaga-event-type": event_type,
        "hooksaga-attempt": str(attempt_number),
        **dict.fromkeys(sent.own_names, MASK),
        "traceparent": traceparent,
    }
