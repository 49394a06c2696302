"""Intake: SQS `intake`. Store the events in messages of EventBridge rules, SNS topics and other producers.

A message is the only copy of its events. So a message whose events could not be stored comes back, and an invalid event
goes to the redrive queue at once, with the reason.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hooksaga.adapters.database import Role
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.adapters.queues import Queue
from hooksaga.aws.dispatch import wake_router
from hooksaga.aws.function import Event, Function, Invocation
from hooksaga.aws.intake_records import IntakeRecord, for_redrive, read_records
from hooksaga.aws.sqs_events import failures
from hooksaga.aws.triggers import Trigger, expect
from hooksaga.core.errors import Conflict, DatabaseUnavailable, InvalidInput
from hooksaga.core.event_input import EventDraft
from hooksaga.core.intake import ReadMessage, read_message
from hooksaga.runtime.telemetry import logger
from hooksaga.stages.accept_events import AcceptedEvent, Answer, accept_events
from hooksaga.stages.event_catalogue import EventCatalogue
from hooksaga.stages.telemetry import note_accepted


class IntakeFunction(Function):
    @functools.cached_property
    def catalogue(self) -> EventCatalogue:
        return EventCatalogue(compile_schema, reject_unknown=self.settings.unknown_event_types == "reject")


@dataclass(frozen=True, slots=True)
class Taken:
    """A message, its events, and the answer to each."""

    record: IntakeRecord
    read: ReadMessage
    answers: Sequence[Answer]

    @property
    def is_done(self) -> bool:
        """Return whether each of its events is stored, or can never be."""
        return all(isinstance(answer, AcceptedEvent | InvalidInput | Conflict) for answer in self.answers)

    @property
    def refused(self) -> list[tuple[int, InvalidInput | Conflict]]:
        """The positions of its refused events, with the reasons."""
        return [(at, one) for at, one in enumerate(self.answers) if isinstance(one, InvalidInput | Conflict)]


function = IntakeFunction(Role.INGEST)


def handler(event: Event, context: Any) -> Any:
    """Handle an SQS batch. `batchItemFailures` are the messages with an event that is neither stored nor set aside."""
    expect(event, Trigger.SQS)
    return function.run(take, event, context)


async def take(function: IntakeFunction, invocation: Invocation) -> Any:
    records = read_records(invocation.event)
    if invocation.seconds_left() <= 0:
        return failures(records)
    taken = await _accept(function, records)
    done = [one for one in taken if one.is_done]
    kept = await _set_aside(function, [one for one in done if one.refused])
    return failures([*(one.record for one in taken if not one.is_done), *kept])


async def _accept(function: IntakeFunction, records: Sequence[IntakeRecord]) -> list[Taken]:
    """Store the events of all messages in one statement, and wake the router."""
    rules, max_bytes = function.settings.intake_rules, function.settings.payload_max_bytes
    read = [read_message(record.message, rules, max_bytes=max_bytes) for record in records]
    drafts = [part.event for one in read for part in one.parts if isinstance(part.event, EventDraft)]
    accept = partial(accept_events, drafts=drafts, in_order=True, catalogue=function.catalogue)
    try:
        answers = await function.session.run(accept) if drafts else []
    except DatabaseUnavailable as error:
        logger.warning("database unavailable", extra={"messages": len(records), "error": str(error)})
        answers: list[Answer] = [error] * len(drafts)
    new = [answer for answer in answers if isinstance(answer, AcceptedEvent) and not answer.duplicate]
    if new:
        note_accepted(new)
        await wake_router(function.queues, [event.traced for event in new])
    rest = iter(answers)
    return [
        Taken(
            record,
            one,
            [next(rest) if isinstance(part.event, EventDraft) else part.event for part in one.parts],
        )
        for record, one in zip(records, read, strict=True)
    ]


async def _set_aside(function: IntakeFunction, taken: Sequence[Taken]) -> list[IntakeRecord]:
    """Send refused events to the redrive queue. Return the messages for which that failed; SQS moves them later."""
    if not taken:
        return []
    for one in taken:
        _log_refusals(one)
    messages = [
        for_redrive(one.record, one.read.body_of([at for at, _ in one.refused]), one.refused[0][1])
        for one in taken
    ]
    sent = await function.queues.send(Queue.INTAKE_REDRIVE, messages)
    return [taken[position].record for position in sent.failed]


def _log_refusals(taken: Taken) -> None:
    for at, reason in taken.refused:
        keys = {
            "message_id": taken.record.message_id,
            "position": at,
            "error_code": reason.code,
            "field": reason.field if isinstance(reason, InvalidInput) else "",
            "reason": str(reason),
        }
        logger.error("message refused", extra=keys)
