"""Messages of the queue `intake`: which envelope a message has, and the events in it.

The envelope is recognized by the members of the JSON and by the message attribute `event_type`. An SNS notification is
opened first. Then, in this order: batch, CloudEvent, EventBridge event, hooksaga event, and else a payload, whose event
type is in the attribute or found by a setting. With the attribute, only a CloudEvent and an EventBridge event are
envelopes. docs/intake.md has the same table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import (
    MAX_BATCH_DEPTH,
    EventDraft,
    check_json_syntax,
    check_json_text,
    checked_items,
    items_of_batch,
)
from hooksaga.core.intake_envelopes import (
    Reading,
    read_cloud_event,
    read_eventbridge_event,
    read_hooksaga_event,
    read_notification,
    read_payload_event,
)
from hooksaga.core.intake_messages import TYPE, IntakeMessage
from hooksaga.core.intake_rules import IntakeRules

MAX_MESSAGE_BYTES = 1_048_576
"""Limit of SQS."""

_CLOUD_EVENT = "specversion"
_NOTIFICATION = {"Type", "MessageId", "TopicArn"}
_EVENTBRIDGE = "detail-type"
_HOOKSAGA = {"event_type", "payload"}
_HOOKSAGA_BATCH = {"items"}

_Reader = Callable[[Reading, bytes], EventDraft]


class Part(NamedTuple):
    """One event of a message, or why it is refused. text: its own JSON."""

    event: EventDraft | InvalidInput
    text: str


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """The events of a message. batch: the text around the events of a batch; None for a single event."""

    parts: Sequence[Part]
    batch: tuple[str, str] | None = None

    def body_of(self, positions: Sequence[int]) -> str | None:
        """Return the body of a batch with only the parts at these positions; None if that is the whole message."""
        if self.batch is None or len(positions) == len(self.parts):
            return None
        return ",".join(self.parts[at].text for at in positions).join(self.batch)


def read_message(message: IntakeMessage, rules: IntakeRules, *, max_bytes: int) -> ReadMessage:
    """Return the events of a message, or the errors that refuse them. max_bytes: limit of one event."""
    reading = Reading(message, rules, max_bytes)
    try:
        body = _checked(message)
        if _members(body).keys() >= _NOTIFICATION:
            reading = replace(reading, message=read_notification(body))
            body = _checked(reading.message)
        return _read(reading, body)
    except InvalidInput as error:
        return ReadMessage([Part(error, message.body)])


def _checked(message: IntakeMessage) -> bytes:
    body = message.body.encode("utf-8", "surrogatepass")  # half a surrogate pair is refused as invalid UTF-8
    check_json_text(body, MAX_MESSAGE_BYTES, MAX_BATCH_DEPTH)
    check_json_syntax(body)
    return body.strip()


def _read(reading: Reading, body: bytes) -> ReadMessage:
    has_type = TYPE in reading.message.attributes
    if body.startswith(b"[") and not has_type:
        return _read_each(reading, _array(body), read_cloud_event, ("[", "]"))
    members = _members(body).keys()
    if members == _HOOKSAGA_BATCH and not has_type:
        return _read_each(reading, items_of_batch(body), read_hooksaga_event, ('{"items":[', "]}"))
    if _CLOUD_EVENT in members:
        read = read_cloud_event
    elif _EVENTBRIDGE in members:
        read = read_eventbridge_event
    elif members >= _HOOKSAGA and not has_type:
        read = read_hooksaga_event
    else:
        read = read_payload_event
    return ReadMessage([_part(reading, body, read)])


def _read_each(
    reading: Reading, texts: Sequence[bytes], read: _Reader, batch: tuple[str, str]
) -> ReadMessage:
    parts = [_part(replace(reading, position=number), text, read) for number, text in enumerate(texts)]
    return ReadMessage(parts, batch)


def _part(reading: Reading, text: bytes, read: _Reader) -> Part:
    try:
        return Part(read(reading, text), text.decode())
    except InvalidInput as error:
        return Part(error, text.decode())


def _members(body: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of an object; none for another JSON value."""
    return msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if body.startswith(b"{") else {}


def _array(body: bytes) -> list[bytes]:
    return checked_items([bytes(item) for item in msgspec.json.decode(body, type=list[msgspec.Raw])])
