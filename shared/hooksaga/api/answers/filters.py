"""Comparison of recent events with a filter."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    AcceptedAt,
    Answer,
    Count,
    EventType,
    Filter,
    OwnEventId,
    SubscriptionId,
    described,
)
from hooksaga.api.answers.routing import FailedCondition


class ComparedEvent(Answer):
    """One event."""

    id: OwnEventId
    event_type: EventType
    created_at: AcceptedAt
    matches: Annotated[bool, described("Whether the filter matches its attributes.", False)]
    failed_condition: Annotated[
        FailedCondition | None,
        described("The first condition that it does not meet; `null` for a match.", None),
    ]


class FilterTest(Answer):
    """Recent events of a subscription's types, compared with a filter."""

    subscription_id: SubscriptionId
    filter: Filter
    compared: Annotated[Count, described("The number of events.", 100)]
    matched: Annotated[Count, described("Those that match.", 12)]
    items: Annotated[list[ComparedEvent], described("The events, newest first.")]
