"""Triggers of functions, identified by the shape of the event. Each handler accepts its own kinds.

A function can be invoked by whatever its policy lets in: a service that was wired to the wrong function, a gateway of
another kind, or a test event in AWS's console. Such an event changes nothing, and the error says what it was.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple, cast

from hooksaga.core.errors import HooksagaError

MAX_KEYS_NAMED = 5
MAX_CHARACTERS_NAMED = 60
_SQS = "aws:sqs"


class Trigger(StrEnum):
    """Kinds of events. The value is its name in error messages."""

    SQS = "an SQS batch"
    TICK = "a tick of an EventBridge rule"
    REST = "a request of a REST API (payload format 1.0)"
    DEPLOYMENT = "a request of CloudFormation"
    OBJECT = "an object of one's own"
    EMPTY = "an empty object"
    FOREIGN = "the event of another service"


class UnexpectedEvent(HooksagaError):
    """This function does not accept events of this kind. Nothing was done."""


class _Recognized(NamedTuple):
    trigger: Trigger
    name: str


def expect(event: object, *taken: Trigger) -> Trigger:
    """Return the kind of the event. Raises UnexpectedEvent, which names the kind, if it is not accepted."""
    found = _recognize(event)
    if found.trigger not in taken:
        raise UnexpectedEvent(f"this function takes {' or '.join(taken)}, not {found.name}")
    return found.trigger


def is_sqs_record(record: object) -> bool:
    if not isinstance(record, dict):
        return False
    fields = cast("dict[str, Any]", record)
    source = _source_of(fields)
    return source == _SQS if source else "messageId" in fields or "body" in fields


def name_of_record(record: object) -> str:
    """Return the name of an entry of `Records` that is not a queue message."""
    if not isinstance(record, dict):
        return _json_name(record)
    source = _source_of(cast("dict[str, Any]", record))
    return f"a record of {_shown(source)}" if source else "a record without a source"


def _recognize(event: object) -> _Recognized:
    if not isinstance(event, dict):
        return _Recognized(Trigger.FOREIGN, _json_name(event))
    fields = cast("dict[str, Any]", event)
    return _by_records(fields) or _by_request(fields) or _by_source(fields) or _own_object(fields)


def _by_records(event: Mapping[str, Any]) -> _Recognized | None:
    records = event.get("Records")
    if not isinstance(records, list):
        return None
    entries = cast("list[object]", records)
    if not entries or any(map(is_sqs_record, entries)):
        return _Recognized(Trigger.SQS, Trigger.SQS)
    return _Recognized(Trigger.FOREIGN, name_of_record(entries[0]))


def _by_request(event: Mapping[str, Any]) -> _Recognized | None:
    context: Any = event.get("requestContext")
    names = cast("dict[str, Any]", context) if isinstance(context, dict) else {}
    if "elb" in names:
        return _Recognized(Trigger.FOREIGN, "a request of a load balancer")
    if event.get("version") == "2.0" or "http" in names:
        return _Recognized(Trigger.FOREIGN, "a request of an HTTP API (payload format 2.0)")
    if "connectionId" in names:
        return _Recognized(Trigger.FOREIGN, "a request of a WebSocket API")
    if isinstance(event.get("httpMethod"), str) and isinstance(event.get("path"), str):
        return _Recognized(Trigger.REST, Trigger.REST)
    return None


def _by_source(event: Mapping[str, Any]) -> _Recognized | None:
    if "detail-type" in event:
        kind = event["detail-type"]
        if kind == "Scheduled Event":
            return _Recognized(Trigger.TICK, Trigger.TICK)
        return _Recognized(Trigger.FOREIGN, f"the EventBridge event {_shown(kind)}")
    if isinstance(event.get("RequestType"), str):
        return _Recognized(Trigger.DEPLOYMENT, Trigger.DEPLOYMENT)
    return None


def _own_object(event: Mapping[str, Any]) -> _Recognized:
    """Name the keys of an object; not its values, which may be private data."""
    if not event:
        return _Recognized(Trigger.EMPTY, Trigger.EMPTY)
    keys = ", ".join(_shown(key) for key in list(event)[:MAX_KEYS_NAMED])
    return _Recognized(
        Trigger.OBJECT, f"an object with the keys {keys}" + (", …" if len(event) > MAX_KEYS_NAMED else "")
    )


def _source_of(record: Mapping[str, Any]) -> str:
    """Return the source of a record. Only SNS capitalizes the name of its field."""
    source = record.get("eventSource", record.get("EventSource"))
    return source if isinstance(source, str) else ""


def _json_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a number"


def _shown(text: object) -> str:
    return ascii(str(text)[:MAX_CHARACTERS_NAMED])
