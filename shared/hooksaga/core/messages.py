"""Bodies of queue messages. They contain only ids, so a lost, late or duplicated message changes nothing."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

CORRELATION_ATTRIBUTE = "correlation_id"
"""Message attribute with the trace id, for the log only."""

Id = Annotated[int, Field(ge=1, lt=2**63)]


class QueueMessage(BaseModel):
    """Base class of message bodies. Unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RoutingMessage(QueueMessage):
    event_id: Id


class SubscriptionMessage(QueueMessage):
    """To the orchestrator: this subscription may have a delivery that is due, and room for it."""

    subscription_id: Id


class ResultMessage(QueueMessage):
    job_id: Id


class CancelMessage(QueueMessage):
    """Admin to orchestrator: a saga to cancel if it waits."""

    cancel_saga_id: Id


class OrchestrationMessage(QueueMessage):
    """Any message to the orchestrator."""

    subscription_id: Id | None = None
    job_id: Id | None = None
    cancel_saga_id: Id | None = None

    def model_post_init(self, _context: object) -> None:
        given = (self.subscription_id, self.job_id, self.cancel_saga_id)
        if sum(value is not None for value in given) != 1:
            raise ValueError("exactly one of subscription_id, job_id and cancel_saga_id is needed")


class DeliveryMessage(QueueMessage):
    job_id: Id
    saga_id: Id


class DeadTaskEvent(BaseModel):
    """Notification of a dead letter, for the user's alarms and tools. The dead letter itself is stored."""

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
