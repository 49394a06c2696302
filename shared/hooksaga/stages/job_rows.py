"""Row types of a worker's jobs: waiting, claimed, and with the result of an attempt."""

from datetime import datetime
from uuid import UUID

import msgspec

from hooksaga.adapters.http_sender import SendOutcome
from hooksaga.core.cloud_event_output import PAYLOAD, DeliveryFormat
from hooksaga.core.saga import JobStatus
from hooksaga.core.trace import Traced, correlation_id_of


class ClaimedJob(msgspec.Struct, frozen=True):
    """A job that this worker has leased until lease_until, with the configuration read at the claim.

    payload is JSON text to the byte, empty when the event was erased; headers is the JSON text of own_headers' stored
    form; secrets are sealed, the current one first.
    cloud_event: what read_source_event reads, for a format that sends a CloudEvent.
    alone: its workers died repeatedly, so no other such job may be claimed beside it.
    """

    id: int
    saga_id: int
    subscription_id: int
    attempt_number: int
    claim_count: int
    leased_at: datetime
    lease_until: datetime
    event_id: int
    webhook_id: UUID
    traceparent: str | None
    event_type: str
    event_created_at: datetime
    payload: str
    callback_url: str
    headers: str
    timeout_seconds: float | None
    deliverable: bool
    secrets: list[str] | None
    alone: bool = False
    is_test: bool = False
    format: DeliveryFormat = PAYLOAD
    cloud_event: str | None = None
    requeued_from: int | None = None
    resent_from: int | None = None
    bulk_operation_id: int | None = None

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


class AttemptResult(msgspec.Struct, frozen=True):
    """Result of the attempt of one claimed job.

    own_header_names: names of the subscription's custom headers, separated by spaces; None if no connection was tried.
    sent_format: the format of the request; None for the payload alone, and if no connection was tried.
    """

    job: ClaimedJob
    outcome: SendOutcome
    own_header_names: str | None = None
    sent_format: DeliveryFormat | None = None

    @property
    def status(self) -> JobStatus:
        return JobStatus.COMPLETED if self.outcome.error_code is None else JobStatus.FAILED

    @property
    def traced_job(self) -> Traced:
        return Traced(self.job.id, self.job.correlation_id)
