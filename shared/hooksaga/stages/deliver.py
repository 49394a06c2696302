"""Deliver jobs: one job, one attempt, one result. A worker never changes sagas, creates jobs or decides on retries.

The claim is one transaction, the POST runs outside any transaction, and the result is written in a second transaction.
The result is written only while the reporter still holds the lease: worker and claim must match.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from hooksaga.adapters.database import Connection, fetch_dicts, fetch_rows, refusals
from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret
from hooksaga.core.attempts import mark_of_test, started_by, started_by_header
from hooksaga.core.cloud_event_output import (
    PAYLOAD,
    CloudEvent,
    cloud_event_of,
    format_body,
    format_headers,
)
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.product import USER_AGENT
from hooksaga.core.signing import InvalidSecret, decode_secret, sign
from hooksaga.core.trace import delivery_traceparent
from hooksaga.stages.batches import run_isolating
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.own_headers import open_headers


class _ClaimEnd(msgspec.Struct, frozen=True):
    """A claim that the worker still held: whether it was ended, or another session has locked its row."""

    id: int
    is_done: bool


ALONE_FROM_LOST = 2
"""From this many lost leases on, the job may be what kills its workers."""


def alone_from_lost(max_lost_leases: int) -> int:
    """Return from how many lost leases on a job is claimed alone, so that its last claim is always one of these."""
    return max(1, min(ALONE_FROM_LOST, max_lost_leases - 1))


async def claim_jobs(
    connection: Connection,
    job_ids: Sequence[int],
    *,
    worker_id: str,
    lease_seconds: float,
    alone_from: int = ALONE_FROM_LOST,
    one_alone: bool = True,
) -> list[ClaimedJob]:
    """Lease the jobs that still wait. Jobs missing from the result belong to another worker.

    Of the jobs with at least alone_from lost leases, only the oldest is leased, or none without one_alone: such a job
    may be what kills its workers, and each crash would cost the jobs claimed beside it a lease too.
    """
    params = {
        "job_ids": list(job_ids),
        "worker_id": worker_id,
        "lease_seconds": lease_seconds,
        "alone_from": alone_from,
        "one_alone": one_alone,
    }
    return await fetch_rows(connection, load_queries("deliver")["claim_jobs"], params, ClaimedJob)


async def claim_waiting_jobs(
    connection: Connection,
    *,
    slow: bool,
    limit: int,
    worker_id: str,
    lease_seconds: float,
    alone_from: int = ALONE_FROM_LOST,
    one_alone: bool = True,
) -> list[ClaimedJob]:
    """Find and lease the oldest waiting jobs of one lane. As claim_jobs, which leases jobs that are known."""
    params = {
        "slow": slow,
        "limit": limit,
        "worker_id": worker_id,
        "lease_seconds": lease_seconds,
        "alone_from": alone_from,
        "one_alone": one_alone,
    }
    return await fetch_rows(connection, load_queries("deliver")["claim_waiting_jobs"], params, ClaimedJob)


async def attempt(
    sender: HttpSender, box: SecretBox, job: ClaimedJob, *, timeout_seconds: float
) -> AttemptResult:
    """POST one job, signed with every valid secret. Every failure becomes its result, with an error code.

    timeout_seconds is the default for subscriptions without their own.
    """
    if not job.payload:
        return AttemptResult(job, _not_sent(ErrorCode.ERASED))
    if not job.deliverable:
        return AttemptResult(job, _not_sent(ErrorCode.SUBSCRIPTION_INACTIVE))
    try:
        request = build_request(job, box, timeout_seconds=timeout_seconds, timestamp=signed_at(job))
    except (UnreadableSecret, InvalidSecret, ValueError):
        return AttemptResult(job, _not_sent(ErrorCode.INTERNAL_ERROR))
    outcome = await sender.send(request)
    if outcome.resolved_ip is None:
        return AttemptResult(job, outcome)
    names = " ".join(_own_headers(job.headers, box))
    return AttemptResult(job, outcome, names, None if job.format == PAYLOAD else job.format)


def signed_at(job: ClaimedJob) -> int:
    """Return the Unix time in seconds by the database's clock: receivers reject signatures dated by a wrong clock."""
    return int(job.leased_at.timestamp())


def build_request(
    job: ClaimedJob, box: SecretBox, *, timeout_seconds: float, timestamp: int
) -> OutgoingRequest:
    """Build the signed request. Id and body are equal in every attempt with the same format. The body is, or contains,
    the stored payload, byte for byte.

    Raises UnreadableSecret, InvalidSecret, or ValueError for stored headers that are not a JSON object and for a
    subscription without a secret.
    """
    webhook_id = event_id_text(job.webhook_id)
    event = _cloud_event(job, webhook_id)
    body = format_body(job.format, event, job.payload)
    formatted = format_headers(job.format, event)
    cause = started_by(
        requeued_from=job.requeued_from, resent_from=job.resent_from, bulk_operation_id=job.bulk_operation_id
    )
    keys = [_signing_key(box.open(sealed)) for sealed in job.secrets or []]
    headers = {
        "content-type": formatted["content-type"],
        "user-agent": USER_AGENT,
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(keys, webhook_id, timestamp, body),
        "hooksaga-event-type": job.event_type,
        "hooksaga-attempt": str(job.attempt_number),
        **started_by_header(cause),
        **mark_of_test(is_test=job.is_test),
        **_own_headers(job.headers, box),
        # Set last: a stored header with such a name, written by SQL, must not break the event or the trace.
        **formatted,
        "traceparent": delivery_traceparent(job.webhook_id, job.traceparent, job.id, job.claim_count),
    }
    return OutgoingRequest(job.callback_url, headers, body, job.timeout_seconds or timeout_seconds)


def _cloud_event(job: ClaimedJob, webhook_id: str) -> CloudEvent | None:
    if job.cloud_event is None:
        return None
    return cloud_event_of(
        job.cloud_event, webhook_id=webhook_id, event_type=job.event_type, created_at=job.event_created_at
    )


_signing_key = lru_cache(10_000)(decode_secret)
REMEMBERED_HEADERS = 2_048
"""Stored headers of up to this many characters are opened once and cached, like secrets; longer ones each time."""


def _own_headers(stored: str, box: SecretBox) -> Mapping[str, str]:
    if stored == "{}":
        return {}
    return _opened_once(stored, box) if len(stored) <= REMEMBERED_HEADERS else _opened(stored, box)


def _opened(stored: str, box: SecretBox) -> Mapping[str, str]:
    return open_headers(box, json.loads(stored))


_opened_once = lru_cache(10_000)(_opened)


def _not_sent(error_code: ErrorCode) -> SendOutcome:
    return SendOutcome(
        response_status=None,
        error_code=error_code,
        response_body=None,
        response_truncated=False,
        retry_after_seconds=None,
        resolved_ip=None,
        duration_ms=0,
    )


async def record_results(
    connection: Connection,
    results: Sequence[AttemptResult],
    *,
    worker_id: str,
    on_refusal: Callable[[RefusedRow], None] = lambda _row: None,
    on_locked: Callable[[int], None] = lambda _job_id: None,
) -> set[int]:
    """Write results without waiting for locks, and return the ids of the written jobs.

    A missing result came after its lease was lost, and is dropped. The exception is a job reported to on_locked:
    another session has locked its row, so its result is still valid and must be tried again. A result that the
    database rejects is written as `internal_error` instead, alone, and reported to on_refusal; if the database rejects
    that too, the lease expires.
    """

    async def write(batch: Sequence[AttemptResult]) -> list[int]:
        params = {**_result_columns(batch), "worker_id": worker_id}
        async with refusals():
            rows = await fetch_rows(connection, load_queries("deliver")["record_results"], params, _ClaimEnd)
        for row in rows:
            if not row.is_done:
                on_locked(row.id)
        return [row.id for row in rows if row.is_done]

    unwritable: list[AttemptResult] = []

    def set_aside(result: AttemptResult, error: RowRefused) -> int:
        on_refusal(_refused_row(result.job, error))
        unwritable.append(AttemptResult(result.job, _not_sent(ErrorCode.INTERNAL_ERROR)))
        return 0

    def leave(_result: AttemptResult, _error: RowRefused) -> int:
        return 0

    written = set(await run_isolating(write, results, set_aside))
    if unwritable:
        written |= set(await run_isolating(write, unwritable, leave))
    return written - {0}


def _refused_row(job: ClaimedJob, error: RowRefused) -> RefusedRow:
    return RefusedRow(
        reason=str(error),
        saga_id=job.saga_id,
        job_id=job.id,
        subscription_id=job.subscription_id,
        event_id=event_id_text(job.webhook_id),
        correlation_id=job.correlation_id,
    )


def _result_columns(results: Sequence[AttemptResult]) -> dict[str, list[Any]]:
    outcomes = [result.outcome for result in results]
    return {
        "job_ids": [result.job.id for result in results],
        "claim_counts": [result.job.claim_count for result in results],
        "statuses": [result.status.value for result in results],
        "response_statuses": [outcome.response_status for outcome in outcomes],
        "error_codes": [outcome.error_code for outcome in outcomes],
        "durations": [outcome.duration_ms for outcome in outcomes],
        "response_bodies": [outcome.response_body for outcome in outcomes],
        "truncated": [outcome.response_truncated for outcome in outcomes],
        "retry_afters": [outcome.retry_after_seconds for outcome in outcomes],
        "resolved_ips": [outcome.resolved_ip for outcome in outcomes],
        "reconnected": [outcome.reconnected for outcome in outcomes],
        "own_header_names": [result.own_header_names for result in results],
        "sent_formats": [result.sent_format for result in results],
        "response_headers": [outcome.response_headers for outcome in outcomes],
    }


async def hand_back_jobs(
    connection: Connection, jobs: Sequence[ClaimedJob], *, worker_id: str
) -> list[ClaimedJob]:
    """Release claims whose POST was never started, so that the jobs do not wait until the lease expires.

    Returns the claims to try again, because another session has locked their rows.
    """
    params = {
        "job_ids": [job.id for job in jobs],
        "claim_counts": [job.claim_count for job in jobs],
        "worker_id": worker_id,
    }
    rows = await fetch_rows(connection, load_queries("deliver")["hand_back_jobs"], params, _ClaimEnd)
    locked = {row.id for row in rows if not row.is_done}
    return [job for job in jobs if job.id in locked]


async def hand_back_lost_claims(
    connection: Connection, *, worker_id: str, slow: bool, in_hand: Sequence[int]
) -> int:
    """Release the jobs of one lane that this worker holds without knowing, and return how many.

    The answer to their claim was lost with its connection, so their POSTs were never started. in_hand: what it knows.
    """
    params = {"worker_id": worker_id, "slow": slow, "in_hand": list(in_hand)}
    query = load_queries("deliver")["hand_back_lost_claims"]
    return len(await fetch_dicts(connection, query, params))
