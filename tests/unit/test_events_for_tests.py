"""A test event: what its request may name, what is sent instead of what it omits, and when it is refused."""

import pytest

from hooksaga.core.errors import Conflict, InvalidInput
from hooksaga.core.event_input import EventDraft
from hooksaga.core.events_for_tests import draft_test_event, read_test_event

MAX_BYTES = 100
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def draft(body: str, event_types: tuple[str, ...] = ("a.*", "b"), *, takes: bool = True) -> EventDraft:
    return draft_test_event(
        read_test_event(body.encode(), max_bytes=MAX_BYTES),
        subscription_id=7,
        tenant_id="acme",
        event_types=event_types,
        takes=takes,
        traceparent=TRACE,
    )


@pytest.mark.parametrize(
    ("body", "event_types", "event_type", "payload"),
    [
        ("", ("a.*", "b"), "a.test", '{"test": true}'),
        ("{}", ("b", "a.*"), "b", '{"test": true}'),
        ("", ("*",), "test", '{"test": true}'),
        ('{"event_type": "b"}', ("a.*", "b"), "b", '{"test": true}'),
        ('{"payload": {"x":1.10}}', ("a.*", "b"), "a.test", '{"x":1.10}'),
        ('{"event_type": "a.b.c", "payload": null}', ("a.*", "b"), "a.b.c", "null"),
    ],
)
def test_an_omitted_field_has_a_sample_value(
    body: str, event_types: tuple[str, ...], event_type: str, payload: str
) -> None:
    wanted = EventDraft(event_type, payload, "acme", traceparent=TRACE, test_subscription_id=7)
    assert draft(body, event_types) == wanted


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('{"event_type": "c"}', "event_type_not_received", "the subscription does not receive c"),
        ('{"event_type": "a"}', "event_type_not_received", "the subscription does not receive a"),
        (
            '{"event_type": "a b"}',
            "invalid_event_type",
            "event_type must have 1 to 100 characters from A-Z a-z 0-9 _ . : / -",
        ),
        (
            '{"event_type": "hooksaga.x"}',
            "reserved_event_type",
            "event_type must not begin with hooksaga., which is reserved for operational events",
        ),
        (
            '{"event_type": null}',
            "invalid_event",
            "the event is invalid: Expected `str`, got `null`",
        ),
        (
            '{"tenant_id": "b"}',
            "invalid_event",
            "the event is invalid: Object contains unknown field `tenant_id`",
        ),
        (" ", "invalid_json", "the body must be a JSON object, not empty"),
        (
            f'{{"payload": "{"x" * 100}"}}',
            "body_too_large",
            f"the body must be at most {MAX_BYTES} bytes, not 115",
        ),
    ],
)
def test_a_test_event_is_refused_by_the_rule_that_it_breaks(body: str, code: str, message: str) -> None:
    with pytest.raises((Conflict, InvalidInput)) as refused:
        draft(body)
    assert (refused.value.code, str(refused.value)) == (code, message)


def test_a_subscription_that_takes_nothing_is_a_conflict() -> None:
    with pytest.raises(Conflict, match=r"^the subscription is not active and verified$") as refused:
        draft("", takes=False)
    assert refused.value.code == "subscription_inactive"
