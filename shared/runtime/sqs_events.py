"""SQS batches as Lambda hands them over, and the answer that says which messages to give back (spec §6)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from shared.runtime.telemetry import logger

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Message(Generic[Body]):
    """One readable message."""

    message_id: str
    body: Body


def is_sqs_batch(event: dict[str, Any]) -> bool:
    """Whether the event is a batch of messages, be it empty; all else wakes a function without naming work."""
    return isinstance(event.get("Records"), list)


def read_messages(event: dict[str, Any], model: type[Body]) -> list[Message[Body]]:
    """The readable messages of a batch.

    A malformed one is logged and left out: it is not given back either, so SQS deletes it. It would be as malformed
    the next time.
    """
    readable: list[Message[Body]] = []
    for record in event["Records"]:
        message_id = str(record["messageId"])
        try:
            readable.append(Message(message_id, model.model_validate_json(record.get("body") or "")))
        except ValidationError as error:
            reasons = [problem["msg"] for problem in error.errors(include_input=False, include_url=False)]
            logger.error("malformed message deleted", extra={"message_id": message_id, "reasons": reasons})
    return readable


def failures(messages: Iterable[Message[Any]]) -> dict[str, list[dict[str, str]]]:
    """The answer that gives these messages back to the queue, and lets SQS delete the others."""
    return {"batchItemFailures": [{"itemIdentifier": message.message_id} for message in messages]}
