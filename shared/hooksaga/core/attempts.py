"""Trigger and request headers of an attempt, as the attempt log shows them.

Pure. Secrets never reach this module: it knows only the names of the signature and of custom headers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MASK = "***"
"""Placeholder of a secret value."""

STARTED_BY = "hooksaga-started-by"
"""Request header of a delivery that routing did not start. It is outside of the order of an ordered subscription."""

TEST = "hooksaga-test"
"""Request header of a test event."""


class AttemptTrigger(StrEnum):
    """Reason for an attempt. A retry is `retry` for every kind of saga."""

    FIRST = "first"
    RETRY = "retry"
    REQUEUE = "requeue"
    RESEND = "resend"
    BACKFILL = "backfill"


class StartedBy(StrEnum):
    """What started a delivery, if not routing: the value of the header."""

    REQUEUE = "requeue"
    RESEND = "resend"
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
    attempt_number: int,
    *,
    requeued_from: int | None,
    resent_from: int | None,
    bulk_operation_id: int | None,
) -> AttemptTrigger:
    """Return the trigger of an attempt."""
    if attempt_number > 1:
        return AttemptTrigger.RETRY
    cause = started_by(
        requeued_from=requeued_from, resent_from=resent_from, bulk_operation_id=bulk_operation_id
    )
    return AttemptTrigger.FIRST if cause is None else AttemptTrigger(cause.value)


def started_by(
    *, requeued_from: int | None, resent_from: int | None, bulk_operation_id: int | None
) -> StartedBy | None:
    """Return what started a saga; None: routing. A requeue also names the saga that it sends again, and a requeue or
    resend by a bulk operation its operation."""
    if requeued_from is not None:
        return StartedBy.REQUEUE
    if resent_from is not None:
        return StartedBy.RESEND
    return None if bulk_operation_id is None else StartedBy.BACKFILL


def started_by_header(cause: StartedBy | None) -> dict[str, str]:
    return {} if cause is None else {STARTED_BY: cause.value}


def mark_of_test(*, is_test: bool) -> dict[str, str]:
    """Return the header that marks a test event."""
    return {TEST: "true"} if is_test else {}


def masked_headers(
    sent: SentHeaders,
    *,
    webhook_id: str,
    event_type: str,
    attempt_number: int,
    cause: StartedBy | None,
    traceparent: str,
    formatted: Mapping[str, str],
    is_test: bool,
) -> dict[str, str]:
    """Return the request headers as sent, in order, with secrets masked. formatted: those of the format.

    The user-agent is omitted: it contained the version at that time, which is not stored.
    """
    return {
        "content-type": formatted["content-type"],
        "webhook-id": webhook_id,
        "webhook-timestamp": str(sent.webhook_timestamp),
        "webhook-signature": MASK,
        "hooksaga-event-type": event_type,
        "hooksaga-attempt": str(attempt_number),
        **started_by_header(cause),
        **mark_of_test(is_test=is_test),
        **dict.fromkeys(sent.own_names, MASK),
        **formatted,
        "traceparent": traceparent,
    }
