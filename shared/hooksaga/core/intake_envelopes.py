"""Envelopes of the intake: how a CloudEvent, an EventBridge event, a hooksaga event or a payload becomes an event."""

import json
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec.structs import replace

from hooksaga.core.cloud_event_output import JSON_TYPE
from hooksaga.core.cloud_events import broken_rule, read_structured
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import read_exact
from hooksaga.core.event_catalogue import value_at
from hooksaga.core.event_input import (
    EventDraft,
    check_event_type,
    check_idempotency_key,
    check_json_text,
    check_ordering_key,
    check_tenant,
    decode_body,
    read_item,
)
from hooksaga.core.intake_messages import IDEMPOTENCY_KEY, ORDERING_KEY, TENANT, TYPE, IntakeMessage, readable
from hooksaga.core.intake_rules import IntakeRules

MAX_SOURCE = 255
_NOTIFICATION = "Notification"

_Printable = Annotated[str, msgspec.Meta(pattern="^[!-~]{1,200}$")]


@dataclass(frozen=True, slots=True)
class Reading:
    """What every reader needs. max_bytes: limit of one event. position: that of the event in a batch."""

    message: IntakeMessage
    rules: IntakeRules
    max_bytes: int
    position: int | None = None

    def keyed(self, draft: EventDraft) -> EventDraft:
        """Return the event with a key: its own, or the message's source and id, and its position."""
        if draft.external_id is not None:
            return draft
        key = self.message.id if self.position is None else f"{self.message.id}/{self.position}"
        return replace(draft, source=self.message.source[-MAX_SOURCE:], external_id=key)


def read_cloud_event(reading: Reading, text: bytes) -> EventDraft:
    document = read_exact(text) if reading.rules.reads_messages else None
    draft = read_structured(
        text,
        max_bytes=reading.max_bytes,
        tenant_id=_tenant(reading.rules, document, "tenantid"),
        traceparent=reading.message.traceparent,
    )
    return reading.rules.applied_to(draft, document)


def read_hooksaga_event(reading: Reading, text: bytes) -> EventDraft:
    """Read a body of `POST /v1/events`, or an item of `POST /v1/events/batch`."""
    document = read_exact(text) if reading.rules.reads_messages else None
    draft = read_item(
        text,
        max_bytes=reading.max_bytes,
        tenant_id=_tenant(reading.rules, document, TENANT),
        traceparent=reading.message.traceparent,
    )
    return reading.keyed(reading.rules.applied_to(draft, document))


class _EventBridgeEvent(msgspec.Struct):
    """The members that are read; `version`, `account`, `region`, `resources` and others are for pointers."""

    id: str
    source: str
    detail: msgspec.Raw
    time: str | None = None


def read_eventbridge_event(reading: Reading, text: bytes) -> EventDraft:
    """Read an EventBridge event: `detail` is the payload, `source` and `id` are the key."""
    event = decode_body(text, _EventBridgeEvent)
    for name in ("id", "source", "time"):
        value = getattr(event, name)
        if value is not None and (rule := broken_rule(name, value)):
            raise InvalidInput("invalid_event", f"{name}: {rule}", field=name, status=422)
    check_json_text(bytes(event.detail), reading.max_bytes)
    document = read_exact(text)
    draft = EventDraft(
        event_type=_found_type(reading.rules, document),
        payload=bytes(event.detail).decode(),
        tenant_id=check_tenant(None, reading.rules.tenant_for(document, names_own=False)),
        source=event.source,
        external_id=event.id,
        traceparent=reading.message.traceparent,
        cloud_event=json.dumps(_context(event)),
    )
    return reading.rules.applied_to(draft, document)


def _context(event: _EventBridgeEvent) -> dict[str, str]:
    context = {} if event.time is None else {"time": event.time}
    return {**context, "datacontenttype": JSON_TYPE}


def read_payload_event(reading: Reading, text: bytes) -> EventDraft:
    """Read a body that is the payload. All else is in message attributes, or found by the settings."""
    message, rules = reading.message, reading.rules
    check_json_text(text, reading.max_bytes)
    document = read_exact(text)
    given_type, tenant, key = (message.text_of(name) for name in (TYPE, TENANT, ORDERING_KEY))
    own_key = message.text_of(IDEMPOTENCY_KEY)
    draft = EventDraft(
        event_type=_type_of_no_envelope(rules, document)
        if given_type is None
        else check_event_type(given_type),
        payload=text.decode(),
        tenant_id=check_tenant(tenant, rules.tenant_for(document, names_own=tenant is not None)),
        external_id=None if own_key is None else check_idempotency_key([own_key]),
        traceparent=message.traceparent,
        ordering_key=None if key is None else check_ordering_key(key),
        attributes=message.event_attributes,
    )
    return reading.keyed(rules.applied_to(draft, document))


def _tenant(rules: IntakeRules, document: object, member: str) -> str | None:
    """Return the only tenant of a message that may name its own in a member. document: None if no rule needs it."""
    return rules.tenant_for(document, names_own=value_at(document, f"/{member}") is not None)


def _found_type(rules: IntakeRules, document: object) -> str:
    found = rules.type_of(document)
    if found is None:
        rule = f"the message must have a string, number or boolean at {rules.event_type.places}"
        raise InvalidInput("invalid_event_type", rule, field=rules.event_type.places, status=422)
    return found


def _type_of_no_envelope(rules: IntakeRules, document: object) -> str:
    found = rules.type_of(document)
    if found is None:
        raise InvalidInput(
            "invalid_event",
            "the message is no CloudEvent, SNS notification, EventBridge event or hooksaga event, has no message "
            f"attribute {TYPE}, and has no event type at {rules.event_type.places}",
            status=422,
        )
    return found


class _SnsAttribute(msgspec.Struct):
    kind: str = msgspec.field(name="Type")
    value: str = msgspec.field(name="Value")


class _Notification(msgspec.Struct, rename="pascal"):
    type: str
    message_id: _Printable
    topic_arn: str
    message: str = ""
    message_attributes: dict[str, _SnsAttribute] = {}


def read_notification(body: bytes) -> IntakeMessage:
    """Return the message in an SNS notification: its `Message`, with the attributes, the id and the topic."""
    given = decode_body(body, _Notification)
    if given.type != _NOTIFICATION:
        raise InvalidInput(
            "invalid_event",
            f"Type: must be {_NOTIFICATION}; a confirmation of a subscription is no event: open its SubscribeURL once",
            field="Type",
            status=422,
        )
    if rule := broken_rule("source", given.topic_arn[-MAX_SOURCE:]):
        raise InvalidInput("invalid_event", f"TopicArn: {rule}", field="TopicArn", status=422)
    attributes = ((name, one.kind, one.value) for name, one in given.message_attributes.items())
    return IntakeMessage(given.message, given.topic_arn, given.message_id, readable(attributes))
