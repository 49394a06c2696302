"""Erasures."""

from typing import Annotated

from hooksaga.api.answers.answer import (
    EXAMPLE_EVENT_ID,
    Answer,
    Count,
    EventId,
    Page,
    RowId,
    TenantId,
    Time,
    described,
    one_of,
)
from hooksaga.core.erasures import ErasureStatus


class Erasure(Answer):
    """The removal of everything that the producer sent, from one event or from events that a tenant had."""

    id: Annotated[RowId, described("Id.", 5)]
    status: Annotated[str, one_of(ErasureStatus), described("Current state.", "Running")]
    tenant_id: TenantId
    event_id: Annotated[
        EventId | None, described("The event; `null`: events that the tenant had.", EXAMPLE_EVENT_ID)
    ]
    attribute_name: Annotated[
        str | None,
        described(
            "The attribute that chose among the tenant's events; `null`: all of them. Its value is not kept.",
            None,
        ),
    ]
    reason: Annotated[str, described("The reason given by the caller.", "request 2026-117")]
    created_by: Annotated[
        str, described("Name of the API key that started it, or of the caller.", "privacy desk")
    ]
    created_by_key_id: Annotated[RowId | None, described("The API key that started it, if any.", 2)]
    events: Annotated[Count, described("Events that were erased.", 1)]
    dead_letters: Annotated[Count, described("Dead letters whose payload was removed.", 1)]
    attempts: Annotated[Count, described("Attempts whose answer was removed, or will not be stored.", 3)]
    ended: Annotated[Count, described("Waiting deliveries that ended as dead letters with `erased`.", 1)]
    in_flight: Annotated[
        Count, described("Attempts that were in progress: their request could not be recalled.", 0)
    ]
    created_at: Annotated[Time, described("Time of the request.", "2026-03-14T12:00:00.200000Z")]
    last_step_at: Annotated[Time | None, described("Time of the last step.", "2026-03-14T12:00:01.100000Z")]
    finished_at: Annotated[Time | None, described("Time of its end.", None)]


class ErasureStarted(Erasure):
    """The result of requesting an erasure."""

    created: Annotated[
        bool, described("Whether this call started it. `false`: the same erasure was running.", True)
    ]


class ErasureList(Page[Erasure]):
    """A page of erasures."""
