"""Test events: events for one subscription only, marked as tests."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from hooksaga.core.errors import Conflict
from hooksaga.core.event_input import EventDraft, check_event_type, check_json_text, decode_body
from hooksaga.core.event_patterns import matching_patterns, sample_type

SAMPLE_PAYLOAD = '{"test": true}'


class WantedTestEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of POST /v1/subscriptions/{id}/test. Omitted fields have sample values."""

    event_type: str | UnsetType = UNSET
    payload: msgspec.Raw | UnsetType = UNSET


def read_test_event(body: bytes, *, max_bytes: int) -> WantedTestEvent:
    """Parse the body, which may be empty. Raises InvalidInput."""
    if not body:
        return WantedTestEvent()
    check_json_text(body, max_bytes)
    return decode_body(body, WantedTestEvent)


def draft_test_event(
    wanted: WantedTestEvent,
    *,
    subscription_id: int,
    tenant_id: str,
    event_types: Sequence[str],
    takes: bool,
    traceparent: str | None = None,
) -> EventDraft:
    """Return the event for a subscription with these event types. takes: whether it is active and verified.

    Raises Conflict `subscription_inactive` or `event_type_not_received`, or InvalidInput for a type that is not
    allowed.
    """
    if not takes:
        raise Conflict("subscription_inactive", "the subscription is not active and verified")
    given = None if wanted.event_type is UNSET else wanted.event_type
    event_type = check_event_type(given if given is not None else sample_type(event_types))
    if not matching_patterns(event_types, event_type):
        raise Conflict("event_type_not_received", f"the subscription does not receive {event_type}")
    payload = SAMPLE_PAYLOAD if wanted.payload is UNSET else bytes(wanted.payload).decode()
    return EventDraft(
        event_type, payload, tenant_id, traceparent=traceparent, test_subscription_id=subscription_id
    )
