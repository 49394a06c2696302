"""A message of the intake becomes the events in its envelope, or is refused by a rule that names the field."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_catalogue import POINTER_RULE
from hooksaga.core.event_input import EVENT_TYPE_RULE, MAX_BATCH_ITEMS, EventDraft
from hooksaga.core.intake import IntakeMessage, ReadMessage, read_message
from hooksaga.core.intake_messages import MessageAttribute, readable
from hooksaga.runtime.settings import InvalidSettings, read_settings

QUEUE = "arn:aws:sqs:us-east-1:123456789012:hooksaga-intake"
TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "A-1",
    "source": "/shop",
    "type": "order.created",
    "data": {"n": 1},
}
EVENTBRIDGE = {
    "version": "0",
    "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
    "detail-type": "Order Created",
    "source": "shop.orders",
    "account": "123456789012",
    "time": "2026-01-31T12:00:00Z",
    "region": "us-east-1",
    "resources": ["arn:aws:ec2:us-east-1:123456789012:instance/i-1"],
    "detail": {"order": {"id": 1001, "country": "DE"}, "tenant": "acme", "paid": True},
}
HOOKSAGA = {"event_type": "order.created", "payload": {"n": 1}}


BRACES = "every brace must belong to a pair around a JSON Pointer, such as {/detail/tenant}"
AROUND = f"the text around JSON Pointers must have {EVENT_TYPE_RULE}"
PAIRS = f"must be NAME=POINTER, separated by commas; each pointer is {POINTER_RULE}"


def read(
    body: object,
    message_attributes: dict[str, Any] | None = None,
    *,
    max_bytes: int = 10_000,
    **settings: Any,
) -> ReadMessage:
    """A body that is no text is written as JSON."""
    text = body if isinstance(body, str) else json.dumps(body)
    given = {
        name: value if isinstance(value, MessageAttribute) else MessageAttribute(value)
        for name, value in (message_attributes or {}).items()
    }
    rules = read_settings(**{f"intake_{name}": value for name, value in settings.items()}).intake_rules
    return read_message(IntakeMessage(text, QUEUE, "m-1", given), rules, max_bytes=max_bytes)


def draft(body: object, message_attributes: dict[str, Any] | None = None, **options: Any) -> EventDraft:
    (part,) = read(body, message_attributes, **options).parts
    assert isinstance(part.event, EventDraft), part.event
    return part.event


def refusal(
    body: object, message_attributes: dict[str, Any] | None = None, **options: Any
) -> tuple[str, str]:
    """The code and the field of the error that refuses a whole message."""
    (part,) = read(body, message_attributes, **options).parts
    assert isinstance(part.event, InvalidInput), part.event
    return part.event.code, part.event.field


def notification(message: object, attributes: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    text = message if isinstance(message, str) else json.dumps(message)
    return {
        "Type": "Notification",
        "MessageId": "95df01b4-ee98-5cb9-9903-4c221d41eb5e",
        "TopicArn": TOPIC,
        "Message": text,
        "Timestamp": "2026-01-31T12:00:00.000Z",
        "SignatureVersion": "1",
        **({"MessageAttributes": attributes} if attributes else {}),
        **changes,
    }


def test_a_cloud_event_is_the_one_that_the_api_takes() -> None:
    found = draft({**CLOUD_EVENT, "partitionkey": "k", "country": "DE", "tenantid": "acme"})
    assert (found.source, found.external_id, found.event_type) == ("/shop", "A-1", "order.created")
    assert (found.tenant_id, found.ordering_key, found.attributes) == ("acme", "k", '{"country":"DE"}')


def test_an_eventbridge_event_keeps_source_id_time_and_the_bytes_of_its_detail() -> None:
    body = json.dumps(EVENTBRIDGE).replace("1001", "1001.10")
    found = draft(body)
    assert (found.source, found.external_id) == ("shop.orders", EVENTBRIDGE["id"])
    assert (found.event_type, found.tenant_id) == ("Order_Created", "default")
    assert found.payload == json.dumps(EVENTBRIDGE["detail"]).replace("1001", "1001.10")
    assert found.cloud_event is not None
    assert json.loads(found.cloud_event) == {
        "time": "2026-01-31T12:00:00Z",
        "datacontenttype": "application/json",
    }


@pytest.mark.parametrize("missing", ["id", "source", "detail"])
def test_an_eventbridge_event_without_a_member_is_no_payload(missing: str) -> None:
    body = {name: value for name, value in EVENTBRIDGE.items() if name != missing}
    assert refusal(body) == ("invalid_event", missing)


def test_two_events_with_one_id_of_two_sources_have_two_keys() -> None:
    one, other = draft(EVENTBRIDGE), draft({**EVENTBRIDGE, "source": "shop.billing"})
    assert one.external_id == other.external_id
    assert one.source != other.source


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": 7}, "id"),
        ({"id": "x" * 256}, "id"),
        ({"id": "a\u0000"}, "id"),
        ({"source": ""}, "source"),
        ({"source": "hooksaga"}, "source"),
        ({"source": "x" * 256}, "source"),
        ({"time": "yesterday"}, "time"),
        ({"detail-type": ""}, "event_type"),
        ({"detail-type": "x" * 101}, "event_type"),
        ({"detail-type": "hooksaga.delivery"}, "event_type"),
        ({"detail-type": {"a": 1}}, "/detail-type"),
        ({"detail-type": None}, "/detail-type"),
        ({"source": None}, "source"),
    ],
)
def test_an_eventbridge_event_is_refused_by_the_member_that_breaks_a_rule(
    change: dict[str, Any], field: str
) -> None:
    assert refusal({**EVENTBRIDGE, **change})[1] == field


@pytest.mark.parametrize("attributes", [None, {"kind": {"Type": "String", "Value": "x"}}])
@pytest.mark.parametrize("inner", [CLOUD_EVENT, EVENTBRIDGE, {**HOOKSAGA, "idempotency_key": "k"}])
def test_an_envelope_in_an_sns_notification_is_the_envelope(
    inner: dict[str, Any], attributes: dict[str, Any] | None
) -> None:
    assert draft(notification(inner, attributes)) == draft(inner)


def test_a_payload_in_an_sns_notification_has_the_topic_and_the_message_id_as_its_key() -> None:
    attributes = {
        "event_type": {"Type": "String", "Value": "order.created"},
        "tenant_id": {"Type": "String", "Value": "acme"},
        "ordering_key": {"Type": "String", "Value": "A-1"},
        "total": {"Type": "Number", "Value": "1.10"},
        "tags": {"Type": "String.Array", "Value": '["a"]'},
        "picture": {"Type": "Binary", "Value": "AAAA"},
        "traceparent": {"Type": "String", "Value": TRACE},
    }
    found = draft(notification('{"a": 1.10}', attributes))
    assert (found.source, found.external_id) == (TOPIC, "95df01b4-ee98-5cb9-9903-4c221d41eb5e")
    assert (found.event_type, found.payload, found.tenant_id) == ("order.created", '{"a": 1.10}', "acme")
    assert (found.ordering_key, found.attributes, found.traceparent) == ("A-1", '{"total":1.10}', TRACE)


def test_raw_delivery_gives_the_same_event_with_the_id_of_the_queue() -> None:
    plain = {"event_type": {"Type": "String", "Value": "a"}, "n": {"Type": "Number", "Value": "7"}}
    wrapped = draft(notification("[1]", plain))
    raw = draft("[1]", {"event_type": "a", "n": MessageAttribute("7", is_number=True)})
    assert (raw.source, raw.external_id) == (QUEUE, "m-1")
    assert (raw.event_type, raw.payload, raw.attributes) == (
        wrapped.event_type,
        wrapped.payload,
        wrapped.attributes,
    )


def test_a_topic_with_a_long_name_is_told_from_others_by_its_end() -> None:
    topic = f"arn:aws:sns:us-east-1:123456789012:{'x' * 255}y"
    found = draft(notification("1", {"event_type": {"Type": "String", "Value": "a"}}, TopicArn=topic))
    assert found.source == topic[-255:]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (notification(EVENTBRIDGE, Type="SubscriptionConfirmation"), "invalid_event", "Type"),
        (notification(EVENTBRIDGE, MessageId=""), "invalid_event", "MessageId"),
        (notification(EVENTBRIDGE, MessageId=7), "invalid_event", "MessageId"),
        (notification(EVENTBRIDGE, TopicArn=""), "invalid_event", "TopicArn"),
        (notification(EVENTBRIDGE, Message=7), "invalid_event", "Message"),
        (notification("Hello from SNS!"), "invalid_json", ""),
        (notification(""), "invalid_json", ""),
        ({"Type": "Notification", "MessageId": "1", "TopicArn": TOPIC}, "invalid_json", ""),
        (notification(notification(EVENTBRIDGE)), "invalid_event", ""),
        (notification(EVENTBRIDGE, {"a": "x"}), "invalid_event", "MessageAttributes[...]"),
    ],
)
def test_a_notification_is_refused_by_its_member(body: object, code: str, field: str) -> None:
    assert refusal(body) == (code, field)


def test_a_hooksaga_event_has_its_own_key_or_that_of_its_message() -> None:
    keyed = draft({**HOOKSAGA, "idempotency_key": "order-1"})
    assert (keyed.source, keyed.external_id) == ("", "order-1")
    found = draft({**HOOKSAGA, "tenant_id": "acme", "ordering_key": "k", "attributes": {"a": 1.10}})
    assert (found.source, found.external_id) == (QUEUE, "m-1")
    assert (found.tenant_id, found.ordering_key, found.attributes) == ("acme", "k", '{"a":1.1}')


def test_the_items_of_a_batch_have_keys_of_their_own_and_a_bad_one_fails_alone() -> None:
    bad = {**HOOKSAGA, "event_type": "no blanks"}
    found = read({"items": [HOOKSAGA, bad, {**HOOKSAGA, "idempotency_key": "k"}]})
    first, refused, last = (part.event for part in found.parts)
    assert isinstance(first, EventDraft)
    assert isinstance(last, EventDraft)
    assert isinstance(refused, InvalidInput)
    assert (first.external_id, last.external_id, refused.code) == ("m-1/0", "k", "invalid_event_type")
    rest = found.body_of([1])
    assert rest is not None
    assert json.loads(rest) == {"items": [bad]}
    assert found.body_of([0, 1, 2]) is None


def test_an_array_is_a_batch_of_cloud_events_and_a_bad_one_fails_alone() -> None:
    found = read([CLOUD_EVENT, {**CLOUD_EVENT, "id": "A-2", "time": "yesterday"}, 7])
    assert [type(part.event) for part in found.parts] == [EventDraft, InvalidInput, InvalidInput]
    rest = found.body_of([1, 2])
    assert rest is not None
    assert json.loads(rest) == [{**CLOUD_EVENT, "id": "A-2", "time": "yesterday"}, 7]
    assert [type(part.event) for part in read(notification([CLOUD_EVENT])).parts] == [EventDraft]


@pytest.mark.parametrize("body", ["[]", json.dumps([CLOUD_EVENT] * (MAX_BATCH_ITEMS + 1)), '{"items": []}'])
def test_a_batch_has_a_limit(body: str) -> None:
    assert refusal(body) == ("invalid_batch", "items")


@pytest.mark.parametrize(
    "body", ["7", '"x"', "null", "[1]", '{"items": [1]}', '{"event_type": "x", "payload": 1}', '{"a": 1}']
)
def test_with_the_attribute_a_body_without_an_envelope_is_the_payload(body: str) -> None:
    found = draft(f" {body}\n", {"event_type": "order.created", "idempotency_key": "k"})
    assert (found.event_type, found.payload) == ("order.created", body)
    assert (found.source, found.external_id) == ("", "k")


@pytest.mark.parametrize("body", [CLOUD_EVENT, EVENTBRIDGE])
def test_an_attribute_for_filters_of_a_topic_does_not_hide_an_envelope(body: dict[str, Any]) -> None:
    assert draft(body, {"event_type": "other"}) == draft(body)


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ({"event_type": "no blanks"}, "event_type"),
        ({"event_type": "a", "tenant_id": "no blanks"}, "tenant_id"),
        ({"event_type": "a", "ordering_key": "a\u0001"}, "ordering_key"),
        ({"event_type": "a", "idempotency_key": "ä"}, "Idempotency-Key"),
        ({"event_type": "a", "long": "x" * 201}, "attributes.long"),
        ({"event_type": "a", "n": MessageAttribute("007", is_number=True)}, "attributes.n"),
        ({"event_type": "a", "n": MessageAttribute("1e99", is_number=True)}, "attributes.n"),
        ({"event_type": "a", **{f"n{number}": "x" for number in range(21)}}, "attributes"),
    ],
)
def test_a_message_attribute_is_refused_by_its_name(attributes: dict[str, Any], field: str) -> None:
    assert refusal("{}", attributes)[1] == field


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "invalid_json"),
        ("  ", "invalid_json"),
        ("hello", "invalid_json"),
        ("{", "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        (r'{"a": "\ud83d"}', "invalid_json"),
        ("\ud83d", "body_not_utf8"),
        ("\ufeff{}", "body_not_utf8"),
        ("[" * 600 + "]" * 600, "body_too_deep"),
        ('{"Event": "s3:TestEvent"}', "invalid_event"),
        ("7", "invalid_event"),
        ('{"specversion": "0.3"}', "invalid_cloud_event"),
    ],
)
def test_a_message_that_is_no_event_is_refused(body: str, code: str) -> None:
    assert refusal(body)[0] == code


@pytest.mark.parametrize("body", [EVENTBRIDGE, HOOKSAGA, CLOUD_EVENT, notification(EVENTBRIDGE)])
def test_the_limit_of_bytes_is_that_of_the_api(body: object) -> None:
    assert refusal(body, max_bytes=20)[0] == "body_too_large"
    assert refusal(json.dumps(body), {"event_type": "a"}, max_bytes=20)[0] == "body_too_large"


def test_an_eventbridge_event_without_a_time_has_none() -> None:
    found = draft({name: value for name, value in EVENTBRIDGE.items() if name != "time"})
    assert json.loads(found.cloud_event or "") == {"datacontenttype": "application/json"}


def test_a_refused_message_keeps_its_text_and_has_no_parts_to_leave_out() -> None:
    found = read(" hello")
    assert [part.text for part in found.parts] == [" hello"]
    assert found.body_of([]) is None


def test_the_attributes_of_a_message_are_its_texts_and_numbers() -> None:
    given = [
        ("text", "String", "7"),
        ("labelled", "String.json", "{}"),
        ("number", "Number", " 7"),
        ("integer", "Number.int", "8"),
        ("array", "String.Array", '["a"]'),
        ("picture", "Binary.png", "AAAA"),
        ("unset", "String", None),
    ]
    found = readable(given)
    assert found == {
        "text": MessageAttribute("7"),
        "labelled": MessageAttribute("{}"),
        "number": MessageAttribute(" 7", is_number=True),
        "integer": MessageAttribute("8", is_number=True),
    }
    event = IntakeMessage("1", QUEUE, "m-1", found)
    assert event.event_attributes == '{"text":"7","labelled":"{}","number":7,"integer":8}'


def test_a_message_attribute_states_the_trace() -> None:
    for body in (HOOKSAGA, EVENTBRIDGE, CLOUD_EVENT):
        assert draft(body, {"traceparent": TRACE}).traceparent == TRACE
    assert draft("1", {"event_type": "a", "traceparent": TRACE}).traceparent == TRACE
    assert draft(EVENTBRIDGE, {"traceparent": "x"}).traceparent is None
    own = {**CLOUD_EVENT, "traceparent": TRACE.replace("4bf9", "5bf9")}
    assert draft(own, {"traceparent": TRACE}).traceparent == own["traceparent"]


@pytest.mark.parametrize(
    ("body", "attributes", "settings", "told", "said"),
    [
        ({**EVENTBRIDGE, "id": ""}, {}, {}, ("invalid_event", "id"), "id: must have 1 to 255 characters"),
        (
            EVENTBRIDGE,
            {},
            {"event_type": "{/detail/kind}.{/x}"},
            ("invalid_event_type", "/detail/kind, /x"),
            "the message must have a string, number or boolean at /detail/kind, /x",
        ),
        (
            {"a": 1},
            {},
            {"event_type": "{/kind}"},
            ("invalid_event", ""),
            (
                "the message is no CloudEvent, SNS notification, EventBridge event or hooksaga event, "
                "has no message attribute event_type, and has no event type at /kind"
            ),
        ),
        (
            notification(EVENTBRIDGE, Type="SubscriptionConfirmation"),
            {},
            {},
            ("invalid_event", "Type"),
            "Type: must be Notification; a confirmation of a subscription is no event: open its SubscribeURL once",
        ),
        (
            notification(EVENTBRIDGE, TopicArn=""),
            {},
            {},
            ("invalid_event", "TopicArn"),
            'TopicArn: must have 1 to 255 characters; "hooksaga" is reserved for operational events',
        ),
        (
            "1",
            {"event_type": "a", "n": MessageAttribute("007", is_number=True)},
            {},
            ("invalid_attributes", "attributes.n"),
            "attributes.n: must be a number as JSON writes it, such as 7 or 0.5",
        ),
        (
            "1",
            {"event_type": "a", "ordering_key": ""},
            {},
            ("invalid_ordering_key", "ordering_key"),
            "ordering_key has 1 to 255 characters, none of them a control character",
        ),
        (
            EVENTBRIDGE,
            {},
            {"tenant": "{/tenant}"},
            ("invalid_tenant_id", "/tenant"),
            f"the message must name its tenant at /tenant, with {EVENT_TYPE_RULE}",
        ),
        (
            EVENTBRIDGE,
            {},
            {"ordering_key": "{/detail/order}"},
            ("invalid_ordering_key", "/detail/order"),
            "the message must have a string, number or boolean at /detail/order",
        ),
    ],
)
def test_a_message_is_refused_in_so_many_words(
    body: object,
    attributes: dict[str, Any],
    settings: dict[str, Any],
    told: tuple[str, str],
    said: str,
) -> None:
    (part,) = read(body, attributes, **settings).parts
    assert isinstance(part.event, InvalidInput)
    assert (part.event.code, part.event.field, part.event.status) == (*told, 422)
    assert str(part.event) == said


class TestSettings:
    """The settings that say where type, tenant, ordering key and attributes are."""

    @pytest.mark.parametrize(
        ("setting", "event_type"),
        [
            ("{/source}/{/detail-type}", "shop.orders/Order_Created"),
            ("{/source}", "shop.orders"),
            ("order.{/detail/order/country}.{/detail/order/id}", "order.DE.1001"),
            ("{/detail/paid}", "true"),
            ("{/resources/0}", "arn:aws:ec2:us-east-1:123456789012:instance/i-1"),
            ("event", "event"),
        ],
    )
    def test_the_type(self, setting: str, event_type: str) -> None:
        assert draft(EVENTBRIDGE, event_type=setting).event_type == event_type

    def test_the_type_is_found_in_a_payload_too(self) -> None:
        found = draft(notification({"kind": "created", "n": 1}), event_type="order.{/kind}")
        assert (found.event_type, found.payload) == ("order.created", '{"kind": "created", "n": 1}')
        assert draft({"paid": False}, event_type="paid.{/paid}").event_type == "paid.false"

    def test_a_message_without_a_type_is_refused_by_the_place(self) -> None:
        assert refusal(EVENTBRIDGE, event_type="{/detail/kind}") == ("invalid_event_type", "/detail/kind")
        assert refusal({"a": 1}, event_type="{/kind}") == ("invalid_event", "")

    @pytest.mark.parametrize(
        ("body", "attributes"),
        [
            (EVENTBRIDGE, {}),
            (HOOKSAGA, {}),
            (CLOUD_EVENT, {}),
            ({"items": [HOOKSAGA]}, {}),
            ([CLOUD_EVENT], {}),
            ("1", {"event_type": "a"}),
            ({**HOOKSAGA, "tenant_id": "acme"}, {}),
            ({**CLOUD_EVENT, "tenantid": "acme"}, {}),
            ("1", {"event_type": "a", "tenant_id": "acme"}),
        ],
    )
    def test_a_fixed_tenant_binds_every_envelope(self, body: object, attributes: dict[str, str]) -> None:
        assert draft(body, attributes, tenant="acme").tenant_id == "acme"

    @pytest.mark.parametrize(
        ("body", "attributes"),
        [
            ({**HOOKSAGA, "tenant_id": "other"}, {}),
            ({**CLOUD_EVENT, "tenantid": "other"}, {}),
            ("1", {"event_type": "a", "tenant_id": "other"}),
        ],
    )
    def test_a_fixed_tenant_refuses_another(self, body: object, attributes: dict[str, str]) -> None:
        assert refusal(body, attributes, tenant="acme") == ("tenant_not_allowed", "tenant_id")
        assert draft(body, attributes, tenant="{/detail/tenant}").tenant_id == "other"

    def test_a_tenant_in_the_message(self) -> None:
        assert draft(EVENTBRIDGE, tenant="t-{/detail/tenant}").tenant_id == "t-acme"
        assert draft({**CLOUD_EVENT, "data": {"t": 7}}, tenant="{/data/t}").tenant_id == "7"
        assert draft({**HOOKSAGA, "payload": {"t": "a"}}, tenant="{/payload/t}").tenant_id == "a"

    @pytest.mark.parametrize("tenant", [..., None, "", "no blanks", {}, [], "x" * 101])
    @pytest.mark.parametrize("body", [EVENTBRIDGE, HOOKSAGA, CLOUD_EVENT])
    def test_a_message_without_a_tenant_reaches_nobody(self, body: dict[str, Any], tenant: object) -> None:
        named = body if tenant is ... else {**body, "tenant": tenant}
        if body is HOOKSAGA and tenant is not ...:
            assert refusal(named, tenant="{/tenant}")[0] in ("invalid_event", "invalid_tenant_id")
        else:
            assert refusal(named, tenant="{/tenant}") == ("invalid_tenant_id", "/tenant")

    def test_the_ordering_key_is_found_unless_the_message_has_one(self) -> None:
        assert draft(EVENTBRIDGE, ordering_key="order-{/detail/order/id}").ordering_key == "order-1001"
        assert draft(EVENTBRIDGE, ordering_key="{/detail/none}").ordering_key is None
        own = {**HOOKSAGA, "ordering_key": "own"}
        assert draft(own, ordering_key="{/payload/n}").ordering_key == "own"
        assert draft(HOOKSAGA, ordering_key="{/payload/n}").ordering_key == "1"
        assert draft(CLOUD_EVENT, ordering_key="{/data/n}").ordering_key == "1"
        assert draft({"n": 7}, {"event_type": "a"}, ordering_key="{/n}").ordering_key == "7"
        half = "{/detail/none}-{/detail/paid}"
        assert refusal(EVENTBRIDGE, ordering_key=half) == (
            "invalid_ordering_key",
            "/detail/none, /detail/paid",
        )
        assert refusal(EVENTBRIDGE, ordering_key="{/detail/order}") == (
            "invalid_ordering_key",
            "/detail/order",
        )

    def test_attributes_are_found_as_the_catalogue_extracts_them(self) -> None:
        where = (
            "country=/detail/order/country, id=/detail/order/id,paid=/detail/paid,none=/x,order=/detail/order"
        )
        found = json.loads(draft(EVENTBRIDGE, attributes=where).attributes)
        assert found == {"country": "DE", "id": 1001, "paid": True}
        assert draft(CLOUD_EVENT, attributes="n=/data/n").attributes == '{"n":1}'
        assert draft({"x=y": 7}, {"event_type": "a"}, attributes="n=/x=y").attributes == '{"n":7}'
        own = {**HOOKSAGA, "attributes": {"a": "own"}}
        assert json.loads(draft(own, attributes="a=/payload/n,b=/payload/n").attributes) == {
            "a": "own",
            "b": 1,
        }

    def test_the_text_around_pointers_may_have_a_hundred_characters(self) -> None:
        setting = f"{'x' * 50}{{/a}}{'x' * 50}"
        assert read_settings(intake_tenant=setting, intake_event_type=setting).intake_rules.tenant is not None

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("event_type", "{detail-type}", f"{{detail-type}} must hold {POINTER_RULE}"),
            ("event_type", f"{{{'x' * 101}}}", f"{{{'x' * 100}}} must hold {POINTER_RULE}"),
            ("event_type", "{/a", BRACES),
            ("event_type", "/a}", BRACES),
            ("event_type", "{}", f"{{}} must hold {POINTER_RULE}"),
            ("event_type", "{/a~2}", f"{{/a~2}} must hold {POINTER_RULE}"),
            ("event_type", "no blanks {/a}", AROUND),
            (
                "event_type",
                "hooksaga.{/a}",
                "must not begin with hooksaga., which is reserved for operational events",
            ),
            ("tenant", "no blanks", AROUND),
            ("tenant", "x" * 101, AROUND),
            ("ordering_key", "fixed", "must have a JSON Pointer in braces, such as {/detail/order_id}"),
            ("attributes", "country", PAIRS),
            ("attributes", "country=detail", PAIRS),
            ("attributes", "country=", PAIRS),
            ("attributes", "a=/x,", PAIRS),
            ("attributes", "a b=/x", "'a b' must be the name of an attribute, once"),
            ("attributes", "a=/x,a=/y", "'a' must be the name of an attribute, once"),
            ("attributes", f"{'x' * 101}=/x", f"'{'x' * 100}' must be the name of an attribute, once"),
        ],
    )
    def test_a_setting_that_breaks_a_rule_is_refused_at_the_start(
        self, name: str, value: str, said: str
    ) -> None:
        rule = f"HOOKSAGA_INTAKE_{name.upper()}: {said}"
        with pytest.raises(InvalidSettings, match=f"(?m)(^|: ){re.escape(rule)}$"):
            read_settings(**{f"intake_{name}": value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *("specversion", "id", "source", "type", "data", "Type", "MessageId", "TopicArn", "Message"),
        *(
            "MessageAttributes",
            "detail-type",
            "detail",
            "time",
            "event_type",
            "payload",
            "items",
            "tenant_id",
        ),
    ]
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=8) | JSON | st.lists(st.dictionaries(NAMES, JSON), max_size=3))
def test_nothing_but_a_refusal_comes_of_any_json(body: Any) -> None:
    everything = "a=/detail/a,b=/data"
    rules: Any = {
        "tenant": "{/detail}",
        "ordering_key": "{/id}",
        "attributes": everything,
        "event_type": "{/type}",
    }
    for found in (read(body), read(body, {"event_type": "a"}), read(body, None, **rules)):
        assert found.parts
        assert all(isinstance(part.event, EventDraft | InvalidInput) for part in found.parts)


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]":,\\ud1'))
def test_nothing_but_a_refusal_comes_of_any_text(body: str) -> None:
    parts = (*read(body).parts, *read(notification(body)).parts)
    assert parts
    for part in parts:
        assert isinstance(part.event, EventDraft | InvalidInput)
