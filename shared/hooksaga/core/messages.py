"""Bodies of queue messages. They contain only ids, so a lost, late or duplicated message changes nothing."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

CORRELATION_ATTRIBUTE = "correlation_id"
"""The attribute beside every body that says which trace the message belongs to. It is for the log, not for the work."""

Id = Annotated[int, Field(ge=1, lt=2**63)]


class QueueMessage(BaseModel):
    """Bodies with other fields are not ours, and are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RoutingMessage(QueueMessage):
    """Ingest to router: this event waits in the outbox."""

    event_id: Id


class SagaMessage(QueueMessage):
    """To the orchestrator: this saga may be due."""

    saga_id: Id


class ResultMessage(QueueMessage):
    """Delivery to orchestrator: this job has a result."""

    job_id: Id


class CancelMessage(QueueMessage):
    """Admin to orchestrator: end this saga if it waits."""

    cancel_saga_id: Id


class OrchestrationMessage(QueueMessage):
    """Any one of the three that the orchestrator takes."""

    saga_id: Id | None = None
    job_id: Id | None = None
    cancel_saga_id: Id | None = None

    def model_post_init(self, _context: object) -> None:
        given = [value for value in (self.saga_id, self.job_id, self.cancel_saga_id) if value is not None]
        if len(given) != 1:
            raise ValueError("exactly one of saga_id, job_id and cancel_saga_id is needed")


class DeliveryMessage(QueueMessage):
    """Orchestrator to delivery: this job waits."""

    job_id: Id
    saga_id: Id


class DeadTaskEvent(BaseModel):
    """For the user's alarms and tools: this delivery is given up. The dead letter is the record; this is the news."""

    model_config = ConfigDict(frozen=True)

    taskId: int | None  # noqa: N815 - the names of the published format
    sagaId: int  # noqa: N815
    eventId: str  # noqa: N815
    subscriptionId: int  # noqa: N815
    deadLetterId: int  # noqa: N815
    workerId: str | None  # noqa: N815
    attemptCount: int  # noqa: N815
    maxAttempts: int  # noqa: N815
    errorCode: str | None  # noqa: N815
    errorMessage: str  # noqa: N815
    timestamp: str
