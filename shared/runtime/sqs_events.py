"""SQS batches as Lambda hands them over, and the answer that says which messages to give back (spec §6)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from shared.core.messages import CORRELATION_ATTRIBUTE
from shared.core.trace import is_correlation_id
from shared.runtime.telemetry import logger

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Message(Generic[Body]):
    """One readable message. Its trace is for the log only, and nothing depends on it: None where it has none."""

    message_id: str
    body: Body
    correlation_id: str | None = None


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
        message_id, correlation_id = str(record["messageId"]), _correlation_id(record)
        try:
            body = model.model_validate_json(record.get("body") or "")
        except ValidationError as error:
            reasons = [problem["msg"] for problem in error.errors(include_input=False, include_url=False)]
            keys = {"message_id": message_id, "correlation_id": correlation_id, "reasons": reasons}
            logger.error("malformed message deleted", extra=keys)
        else:
            readable.append(Message(message_id, body, correlation_id))
    return readable


def _correlation_id(record: dict[str, Any]) -> str | None:
    """Whatever else stands there ends in no log."""
    attributes: dict[str, dict[str, Any]] = record.get("messageAttributes") or {}
    text = str(attributes.get(CORRELATION_ATTRIBUTE, {}).get("stringValue"))
    return text if is_correlation_id(text) else None


def note_idle(messages: Iterable[Message[Any]]) -> None:
    """These messages are deleted and changed nothing: repeats, or work that is gone or is another's."""
    for message in messages:
        ids = message.body.model_dump(exclude_none=True)
        keys = {"message_id": message.message_id, "correlation_id": message.correlation_id, **ids}
        logger.info("message without work", extra=keys)


def failures(messages: Iterable[Message[Any]]) -> dict[str, list[dict[str, str]]]:
    """The answer that gives these messages back to the queue, and lets SQS delete the others."""
    return {"batchItemFailures": [{"itemIdentifier": message.message_id} for message in messages]}
