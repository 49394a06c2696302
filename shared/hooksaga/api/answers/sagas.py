"""Resent and retried sagas."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    Answer,
    Count,
    SagaId,
    SubscriptionId,
    WaitsForWord,
    described,
)


class ResentSaga(Answer):
    """The result of a resend."""

    saga_id: Annotated[SagaId, described("The new saga.", 4790)]


class RetriedSaga(Answer):
    """The result of retrying a saga now."""

    saga_id: SagaId
    waits_for: Annotated[WaitsForWord, described("What it still waits for, such as `paused`.", "start")]


class RetriedSubscription(Answer):
    """The result of retrying the deliveries of a subscription now."""

    subscription_id: SubscriptionId
    retried: Annotated[
        Count, described("Deliveries that waited for a retry, at most 10,000 in one call.", 120)
    ]
