"""Backlog and health of the system."""

from typing import Annotated

from hooksaga.api.answers.answer import Answer, Count, always, described


class Stats(Answer):
    """The current backlog."""

    outbox: Annotated[Count, described("Events that wait for routing.", 0)]
    sagas_waiting: Annotated[Count, described("Sagas that wait for their first or next attempt.", 12)]
    sagas_due: Annotated[Count, described("Sagas that are due.", 3)]
    jobs_pending: Annotated[Count, described("Attempts that wait for a worker.", 3)]
    jobs_leased: Annotated[Count, described("Attempts in progress.", 40)]
    results_unapplied: Annotated[Count, described("Results that are not applied yet.", 1)]
    dead_letters_24h: Annotated[Count, described("Dead letters of the last 24 hours.", 2)]
    oldest_due_seconds: Annotated[
        float | None, described("Seconds since the oldest due saga became due; `null` if none is due.", 0.4)
    ]
    delivered_last_minute: Annotated[Count, described("Sagas completed in the last minute.", 5400)]
    retention_behind_seconds: Annotated[
        float | None,
        described(
            "Age of the oldest rows that retention should have deleted by now; `null` if everything is kept for ever.",
            0.0,
        ),
    ]


class Health(Answer):
    """Liveness of the API and its database."""

    status: Annotated[
        str,
        always("ok"),
        described("Always `ok`; the status is 503 while the database is unavailable.", "ok"),
    ]
