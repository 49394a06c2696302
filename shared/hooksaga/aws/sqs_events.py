"""SQS batches in Lambda's form, and the response that lists the messages to return to the queue."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import BaseModel, ValidationError

from hooksaga.aws.triggers import is_sqs_record, name_of_record
from hooksaga.core.messages import CORRELATION_ATTRIBUTE
from hooksaga.core.trace import is_correlation_id
from hooksaga.runtime.telemetry import logger

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Message(Generic[Body]):
    """One readable message. Its trace, or None, is for the log only; nothing depends on it."""

    message_id: str
    body: Body
    correlation_id: str | None = None


def read_messages(event: dict[str, Any], model: type[Body]) -> list[Message[Body]]:
    """Return the readable messages of a batch.

    A malformed message is logged and skipped. It is not returned to the queue either, so SQS deletes it: a retry would
    not help. The same holds for a record that is not a queue message, or that has no id to return it by.
    """
    found = (_read_record(record, model) for record in queue_records(event))
    return [message for message in found if message is not None]


def queue_records(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a batch that are queue messages with an id to return them by; log the others."""
    return [record for record in event["Records"] if _is_message(record)]


def _is_message(record: Any) -> bool:
    if not is_sqs_record(record):
        _refuse(None, None, [f"{name_of_record(record)} is no message of a queue"])
        return False
    if not isinstance(record.get("messageId"), str):
        _refuse(None, _correlation_id(record), ["it has no messageId"])
        return False
    return True


def _read_record(record: dict[str, Any], model: type[Body]) -> Message[Body] | None:
    message_id, correlation_id = record["messageId"], _correlation_id(record)
    try:
        return Message(message_id, model.model_validate_json(record.get("body") or ""), correlation_id)
    except ValidationError as error:
        reasons = [problem["msg"] for problem in error.errors(include_input=False, include_url=False)]
        return _refuse(message_id, correlation_id, reasons)


def _refuse(message_id: str | None, correlation_id: str | None, reasons: list[str]) -> None:
    keys = {"message_id": message_id, "correlation_id": correlation_id, "reasons": reasons}
    logger.error("malformed message deleted", extra=keys)


def _correlation_id(record: dict[str, Any]) -> str | None:
    """Return the trace id of a valid trace; any other value must not be logged."""
    found: Any = record
    for name in ("messageAttributes", CORRELATION_ATTRIBUTE, "stringValue"):
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) and is_correlation_id(found) else None


def note_idle(messages: Iterable[Message[Any]]) -> None:
    """Log messages that changed nothing and are deleted: duplicates, or work that has ended or belongs to another."""
    for message in messages:
        ids = message.body.model_dump(exclude_none=True)
        keys = {"message_id": message.message_id, "correlation_id": message.correlation_id, **ids}
        logger.info("message without work", extra=keys)


class _Returnable(Protocol):
    @property
    def message_id(self) -> str: ...


def failures(messages: Iterable[_Returnable]) -> dict[str, list[dict[str, str]]]:
    """Return the response that returns these messages to the queue and lets SQS delete the others."""
    return {"batchItemFailures": [{"itemIdentifier": message.message_id} for message in messages]}
