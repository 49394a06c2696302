"""Routing rule: which subscriptions match an event, and why others do not.

The router's statement (sql/queries/route_events.sql) applies the same rule to thousands of rows at once. A test
compares both.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hooksaga.core.event_patterns import matching_patterns


class Reason(StrEnum):
    """Reason why a subscription did not match: the first that applies, in this order."""

    CREATED_LATER = "created_later"
    OTHER_EVENT_TYPE = "other_event_type"
    TEST_OF_ANOTHER = "test_of_another"
    DELETED = "deleted"
    INACTIVE = "inactive"
    UNVERIFIED = "unverified"
    ELIGIBLE_LATER = "eligible_later"
    FILTERED = "filtered"


class RoutingState(StrEnum):
    """State of an event's routing. UNRECORDED: a version that did not record decisions routed it."""

    WAITING = "waiting"
    ROUTED = "routed"
    UNRECORDED = "unrecorded"


class StartedBy(StrEnum):
    ROUTING = "routing"
    BACKFILL = "backfill"
    REQUEUE = "requeue"
    RESEND = "resend"


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a subscription that routing uses, at one time. filter: JSON text. eligible_since is for display."""

    event_types: list[str]
    active: bool
    verified: bool
    eligible_since: datetime | None
    deleted_at: datetime | None
    filter: str | None = None


def why_not_matched(
    facts: Facts | None,
    event_type: str,
    *,
    in_time: bool,
    test_of_another: bool = False,
    passes_filter: bool = True,
) -> Reason | None:
    """Return why an event of this type does not match the subscription, or None if it does.

    facts None: the subscription did not exist. in_time: the event was accepted after the subscription became eligible,
    as determined by `accepted_after` without a clock. test_of_another: it is a test event for another subscription.
    passes_filter: the filter of the subscription matches its attributes, or it is a test event.
    """
    if facts is None:
        return Reason.CREATED_LATER
    if not matching_patterns(facts.event_types, event_type):
        return Reason.OTHER_EVENT_TYPE
    if test_of_another:
        return Reason.TEST_OF_ANOTHER
    if facts.deleted_at is not None:
        return Reason.DELETED
    if not facts.active:
        return Reason.INACTIVE
    if not facts.verified:
        return Reason.UNVERIFIED
    if not in_time:
        return Reason.ELIGIBLE_LATER
    return None if passes_filter else Reason.FILTERED
