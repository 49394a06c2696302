"""Records of the queue `intake`: as messages to read, and as messages to the redrive queue."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hooksaga.adapters.queues import MAX_ATTRIBUTES, Outgoing, text_attribute
from hooksaga.aws.sqs_events import queue_records
from hooksaga.core.errors import Conflict, InvalidInput
from hooksaga.core.intake_messages import REFUSAL, IntakeMessage, readable

MAX_REFUSAL = 500
_NOT_IN_ATTRIBUTES = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that SQS refuses in a text."""


@dataclass(frozen=True, slots=True)
class IntakeRecord:
    message_id: str
    message: IntakeMessage
    attributes: Mapping[str, Mapping[str, Any]]
    """The message attributes as SQS takes them."""


def read_records(event: dict[str, Any]) -> list[IntakeRecord]:
    """Return the messages of a batch. Records that are no queue messages are logged and left out."""
    return [_record(record) for record in queue_records(event)]


def _record(record: dict[str, Any]) -> IntakeRecord:
    attributes = dict(_attributes(record.get("messageAttributes")))
    body, source = record.get("body"), record.get("eventSourceARN")
    message = IntakeMessage(
        body if isinstance(body, str) else "",
        source=source if isinstance(source, str) else "sqs",
        id=record["messageId"],
        attributes=readable(
            (name, one["DataType"], one.get("StringValue")) for name, one in attributes.items()
        ),
    )
    return IntakeRecord(record["messageId"], message, attributes)


def _attributes(given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the attributes that SQS would take; an emulator may hand over others."""
    for name, one in cast("dict[str, Any]", given).items() if isinstance(given, dict) else ():
        kind, text, data = (one.get(key) for key in ("dataType", "stringValue", "binaryValue"))
        if isinstance(kind, str) and isinstance(text, str) and text:
            yield name, {"DataType": kind, "StringValue": text}
        elif isinstance(kind, str) and isinstance(data, str):
            try:
                yield name, {"DataType": kind, "BinaryValue": base64.b64decode(data, validate=True)}
            except binascii.Error:
                continue


def for_redrive(record: IntakeRecord, body: str | None, reason: InvalidInput | Conflict) -> Outgoing:
    """Return the message to the redrive queue, with the reason as an attribute if there is room for one.

    body: the refused events of a batch; None for the message as it came.
    """
    attributes = dict(record.attributes)
    if REFUSAL in attributes or len(attributes) < MAX_ATTRIBUTES:
        text = f"{reason.code}: {reason}"[:MAX_REFUSAL]
        attributes[REFUSAL] = text_attribute(_NOT_IN_ATTRIBUTES.sub("?", text))
    whole = record.message.body if body is None else body
    return Outgoing(whole.encode(errors="replace").decode(), attributes=attributes)
