"""Answers about the system itself."""

from typing import Annotated

from hooksaga.api.answers.answer import Answer, Count, always, said


class Stats(Answer):
    """The backlog now."""

    outbox: Annotated[Count, said("Events that wait to be routed.", 0)]
    sagas_waiting: Annotated[Count, said("Sagas that wait for their first or next attempt.", 12)]
    sagas_due: Annotated[Count, said("Sagas whose next attempt is due now.", 3)]
    jobs_pending: Annotated[Count, said("Attempts that wait for a worker.", 3)]
    jobs_leased: Annotated[Count, said("Attempts under way.", 40)]
    results_unapplied: Annotated[Count, said("Attempts whose result the saga has not taken yet.", 1)]
    dead_letters_24h: Annotated[Count, said("Dead letters of the last 24 hours.", 2)]
    oldest_due_seconds: Annotated[
        float | None, said("How long the oldest due saga has waited; `null` when none is due.", 0.4)
    ]
    delivered_last_minute: Annotated[Count, said("Sagas that were completed in the last minute.", 5400)]


class Health(Answer):
    """Whether the database answers."""

    status: Annotated[
        str, always("ok"), said("Always `ok`; while the database is away the answer is 503.", "ok")
    ]
