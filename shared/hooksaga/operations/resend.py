"""Send deliveries again: an ended one as a new saga, a waiting one at once. No old saga changes its result."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from hooksaga.adapters.database import Connection, Params, fetch_found, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import Conflict, NotFound
from hooksaga.core.sent_again import cannot_send_again
from hooksaga.core.trace import correlation_id_of

MAX_RETRIED = 10_000
"""Maximum of deliveries that one call retries."""


@dataclass(frozen=True, slots=True)
class SentAgain:
    """Result of sending a delivery again.

    saga_id: None only with a reason for it. created: by this call, not by an earlier one.
    """

    subscription_id: int
    saga_id: int | None
    created: bool
    reason: str | None
    webhook_id: UUID
    traceparent: str | None

    @property
    def correlation_id(self) -> str:
        return correlation_id_of(self.webhook_id, self.traceparent)


@dataclass(frozen=True, slots=True)
class Resent(SentAgain):
    """Result of a resend. An earlier call that created the saga counts until that has ended."""

    origin_id: int


@dataclass(frozen=True, slots=True)
class Retried:
    """Deliveries of a subscription that are tried as soon as its flow allows. takes: it is active and verified."""

    subscription_id: int
    takes: bool
    retried: int


async def resend_saga(connection: Connection, saga_id: int, *, tenant_id: str | None) -> Resent:
    """Start a new saga for one that has ended; a repeat returns the same one until it has ended.

    Raises NotFound `saga_not_found`, or Conflict `saga_not_ended`, `subscription_inactive`, `payload_removed` or
    `event_erased`.
    """
    params = {"saga_id": saga_id, "tenant_id": tenant_id}
    missing = NotFound("saga_not_found", f"there is no saga {saga_id}")
    answer = await fetch_found(connection, load_queries("resend")["resend_saga"], params, Resent, missing)
    if answer.reason == "saga_not_ended":
        raise Conflict("saga_not_ended", f"saga {saga_id} has not ended: it can be retried now, not resent")
    if answer.reason is not None:
        raise cannot_send_again(answer.reason)
    return answer


async def resend_chosen(
    connection: Connection, saga_ids: Sequence[int], *, tenant_id: str | None
) -> list[Resent]:
    """Start a new saga for each that has ended, as `resend_saga` does. reason tells why one was not; unknown ids, and
    those of other tenants, are left out."""
    params = {"saga_ids": list(saga_ids), "tenant_id": tenant_id}
    return await fetch_rows(connection, load_queries("resend")["resend_chosen_sagas"], params, Resent)


async def retry_saga_now(connection: Connection, saga_id: int, *, tenant_id: str | None) -> Retried:
    """Make a waiting saga due now. Raises NotFound `saga_not_found`, or Conflict `saga_not_waiting` or
    `subscription_inactive`."""
    params = {"saga_id": saga_id, "tenant_id": tenant_id, "most": 1}
    missing = NotFound("saga_not_found", f"there is no saga {saga_id}")
    words = f"saga {saga_id} does not wait: only a waiting saga is retried now"
    return await _retried(connection, "retry_saga_now", params, missing, Conflict("saga_not_waiting", words))


async def retry_subscription_now(
    connection: Connection, subscription_id: int, *, tenant_id: str | None
) -> Retried:
    """Make all deliveries of a subscription that wait for a retry due now, at most MAX_RETRIED.

    Raises NotFound `subscription_not_found`, or Conflict `nothing_waits` or `subscription_inactive`.
    """
    params = {"id": subscription_id, "tenant_id": tenant_id, "most": MAX_RETRIED}
    missing = NotFound("subscription_not_found", f"there is no subscription {subscription_id}")
    words = f"no delivery of subscription {subscription_id} waits for a retry"
    return await _retried(
        connection, "retry_subscription_now", params, missing, Conflict("nothing_waits", words)
    )


async def _retried(
    connection: Connection, query: str, params: Params, missing: NotFound, nothing: Conflict
) -> Retried:
    answer = await fetch_found(connection, load_queries("resend")[query], params, Retried, missing)
    if not answer.takes:
        raise Conflict("subscription_inactive", "the subscription is not active and verified")
    if not answer.retried:
        raise nothing
    return answer
