"""A CloudEvent becomes the event that it says, or is refused by a rule that names the attribute."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from msgspec import structs

from hooksaga.core.cloud_events import is_binary_mode, read_binary, read_structured
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import EventDraft

MAX = 10_000
GOOD = {"specversion": "1.0", "id": "A-1", "source": "/shop", "type": "order.created"}
BINARY = {"ce-specversion": "1.0", "ce-id": "A-1", "ce-source": "/shop", "ce-type": "order.created"}


def structured(**changes: object) -> bytes:
    return json.dumps(
        {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    ).encode()


def read(body: bytes, tenant_id: str | None = None):
    return read_structured(body, max_bytes=MAX, tenant_id=tenant_id)


def binary(body: bytes = b"{}", *, tenant_id: str | None = None, **headers: str) -> EventDraft:
    """In binary mode; an underscore in a name stands for a hyphen."""
    given = {**BINARY, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return read_binary(list(given.items()), body, max_bytes=MAX, tenant_id=tenant_id)


def test_data_is_the_payload_to_the_byte() -> None:
    body = b'{"specversion":"1.0","id":"1","source":"s","type":"t","data": { "a":1.10,  "a": 2 } }'
    assert read(body).payload == '{ "a":1.10,  "a": 2 }'


def test_source_and_id_are_the_key_and_type_is_the_event_type() -> None:
    draft = read(structured(data={}))
    assert (draft.source, draft.external_id, draft.event_type, draft.tenant_id) == (
        "/shop",
        "A-1",
        "order.created",
        "default",
    )


@pytest.mark.parametrize("name", ["Own", "own-1", "\u0133", "", "x" * 51])
def test_what_is_no_name_is_refused_even_if_it_is_unset(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(**{name: None}))
    assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", name[:50])


def test_missing_data_is_null_and_extensions_are_allowed() -> None:
    draft = read(structured(time="2026-01-01T00:00:00Z", subject="x", traceparent="00-1", tenantid="acme"))
    assert (draft.payload, draft.tenant_id) == ("null", "acme")


@pytest.mark.parametrize(("given", "key"), [("a", "a"), ("x" * 255, "x" * 255), (None, None), (..., None)])
def test_the_partition_key_is_the_ordering_key(given: object, key: str | None) -> None:
    assert read(structured(partitionkey=given)).ordering_key == key


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"specversion": ...}, "specversion"),
        ({"id": ...}, "id"),
        ({"id": ""}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 256}, "id"),
        ({"source": ""}, "source"),
        ({"source": "hooksaga"}, "source"),
        ({"type": ...}, "type"),
        ({"datacontenttype": "text/xml"}, "datacontenttype"),
        ({"data_base64": "AA="}, "data_base64"),
        ({"partitionkey": ""}, "partitionkey"),
        ({"partitionkey": 7}, "partitionkey"),
        ({"partitionkey": True}, "partitionkey"),
        ({"partitionkey": "x" * 256}, "partitionkey"),
        ({"Bad-Name": 1}, "Bad-Name"),
    ],
)
def test_a_broken_attribute_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(**changes))
    assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", field)


def test_an_event_type_outside_the_rule_is_named() -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(type="has space"))
    assert refused.value.code == "invalid_event_type"


def test_half_a_surrogate_pair_is_said_to_be_the_fault() -> None:
    with pytest.raises(InvalidInput, match="surrogate"):
        read(structured(id="\ud800"))


@pytest.mark.parametrize("body", [b"[]", b"3", b"{", b"", b"{}x", b'{"data": NaN}'])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        read(body)


def test_a_key_of_one_tenant_cannot_write_for_another() -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(tenantid="other"), tenant_id="acme")
    assert refused.value.code == "tenant_not_allowed"


def test_binary_mode_takes_the_body_as_it_is() -> None:
    draft = binary(b' {"a": 1.10} ', ce_id="Z%C3%BC%201")
    assert (draft.payload, draft.external_id) == (' {"a": 1.10} ', "Zü 1")


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"ce_id": "%FF"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "%C0%A0"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "%ED%A0%80"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "100%"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "a%zz"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "\xe9"}, b"{}", "invalid_cloud_event"),
        ({"ce_id": "a\tb"}, b"{}", "invalid_cloud_event"),
        ({"ce_type": ""}, b"{}", "invalid_cloud_event"),
        ({"ce_datacontenttype": "application/json"}, b"{}", "invalid_cloud_event"),
        ({"ce_two-words": "x"}, b"{}", "invalid_cloud_event"),
        ({}, b"NaN", "invalid_json"),
        ({}, b"\xff", "body_not_utf8"),
        ({}, b" ", "invalid_json"),
    ],
)
def test_binary_mode_refuses_by_a_rule(headers: dict[str, str], body: bytes, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        binary(body, **headers)
    assert refused.value.code == code


def test_a_header_that_comes_twice_is_no_attribute() -> None:
    """Whichever were taken, two ids would be one."""
    twice = [*BINARY.items(), ("ce-id", "A-2")]
    with pytest.raises(InvalidInput) as refused:
        read_binary(twice, b"{}", max_bytes=MAX, tenant_id=None)
    assert (refused.value.field, str(refused.value)) == ("id", "id: must be sent once")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("A-1", "A-1"),
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro \u20ac \U0001f600"),
        ("%e2%82%ac", "\u20ac"),
        ("%41%2D1", "A-1"),
        ("%2525", "%25"),
        ('"A 1"', "A 1"),
        (r'"a\"b\\c"', r'a"b\c'),
        ('"%20"', " "),
        ('a"b', 'a"b'),
        ("a b", "a b"),
        ("a+b", "a+b"),
    ],
)
def test_a_header_is_unquoted_and_then_percent_decoded_once(value: str, text: str) -> None:
    assert binary(ce_id=value).external_id == text


TAKEN_IN_BOTH_MODES: dict[str, dict[str, object]] = {
    "nothing more": {},
    "every attribute unset": {
        "datacontenttype": None,
        "dataschema": None,
        "subject": None,
        "time": None,
        "tenantid": None,
        "own": None,
    },
    "a type with a suffix": {"datacontenttype": "application/vnd.x+json"},
    "another tree": {"datacontenttype": "text/json"},
    "capitals and a charset": {"datacontenttype": 'Application/JSON; Charset="UTF-8"; v=1'},
    "a time": {"time": "2018-04-05T17:31:00.1234567Z"},
    "a leap second": {"time": "2016-12-31t23:59:60+00:00"},
    "a schema and a subject": {"dataschema": "https://a.example/s#1", "subject": "caf\u00e9 \U0001f600 %"},
    "a boolean and an integer": {"flag": True, "off": False, "count": -2147483648},
    "an empty extension": {"own": ""},
    "a tenant": {"tenantid": "acme"},
    "a trace that is none": {"traceparent": "x"},
    "an id of any text": {"id": 'Euro \u20ac "quoted" 100%'},
}

REFUSED_IN_BOTH_MODES: dict[str, tuple[dict[str, object], str]] = {
    "a time that is none": ({"time": "yesterday"}, "time"),
    "a time without offset": ({"time": "2018-04-05T17:31:00"}, "time"),
    "a week": ({"time": "2018-W14-4T17:31:00Z"}, "time"),
    "an empty time": ({"time": ""}, "time"),
    "an empty subject": ({"subject": ""}, "subject"),
    "an empty schema": ({"dataschema": ""}, "dataschema"),
    "no tenant": ({"tenantid": ""}, "tenantid"),
    "another type": ({"datacontenttype": "text/xml"}, "datacontenttype"),
    "nearly JSON": ({"datacontenttype": "application/jsonx"}, "datacontenttype"),
    "another charset": ({"datacontenttype": "application/json; charset=latin1"}, "datacontenttype"),
    "another version": ({"specversion": "0.3"}, "specversion"),
    "no version": ({"specversion": None}, "specversion"),
    "no id": ({"id": None}, "id"),
    "an empty id": ({"id": ""}, "id"),
    "a long id": ({"id": "x" * 256}, "id"),
    "a control character": ({"id": "a\x85b"}, "id"),
    "a line end in an extension": ({"own": "a\nb"}, "own"),
    "a code point that is no character": ({"subject": "\ufffe"}, "subject"),
    "a source of our own": ({"source": "hooksaga"}, "source"),
    "a name in capitals": ({"o_n": "x"}, "o_n"),
    "a long name": ({"n" * 51: "x"}, "n" * 50),
}


def drafts_of(attributes: dict[str, object], data: bytes) -> Iterator[Callable[[], EventDraft]]:
    """The same event in both modes."""
    given = {name: value for name, value in {**GOOD, **attributes}.items() if value is not None}
    unset = {name: None for name, value in attributes.items() if value is None}
    body = json.dumps({**given, **unset}).encode()[:-1] + (b',"data":' + data + b"}" if data else b"}")
    yield lambda: read(body)
    texts = {
        name: json.dumps(value) if isinstance(value, bool | int) else str(value)
        for name, value in given.items()
    }
    headers = [
        (
            "content-type" if name == "datacontenttype" else f"ce-{name}",
            text if name == "datacontenttype" else quote(text),
        )
        for name, text in texts.items()
    ]
    yield lambda: read_binary(headers, data, max_bytes=MAX, tenant_id=None)


@pytest.mark.parametrize(
    "data", [b'{"x": 1.10}', b"", b"null", b"[" * 64 + b"]" * 64], ids=["data", "none", "null", "deep"]
)
@pytest.mark.parametrize("attributes", TAKEN_IN_BOTH_MODES.values(), ids=TAKEN_IN_BOTH_MODES)
def test_both_modes_take_the_same_events(attributes: dict[str, object], data: bytes) -> None:
    structured, from_headers = (take() for take in drafts_of(attributes, data))
    assert structured == from_headers
    assert structured.payload == (data.decode() or "null")


@pytest.mark.parametrize(("attributes", "field"), REFUSED_IN_BOTH_MODES.values(), ids=REFUSED_IN_BOTH_MODES)
def test_both_modes_refuse_the_same_events(attributes: dict[str, object], field: str) -> None:
    modes = list(drafts_of(attributes, b"1"))
    assert len(modes) == 2
    for take in modes:
        with pytest.raises(InvalidInput) as refused:
            take()
        assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", field)


def test_neither_mode_takes_data_that_is_too_deep() -> None:
    modes = list(drafts_of({}, b"[" * 65 + b"]" * 65))
    assert len(modes) == 2
    for take in modes:
        with pytest.raises(InvalidInput) as refused:
            take()
        assert refused.value.code == "body_too_deep"


@pytest.mark.parametrize(
    "value",
    [1.5, 1e-3, 2147483648, -2147483649, 1e300, [], {}, 10**5000],
    ids=["fraction", "exponent", "large", "small", "huge", "list", "object", "long"],
)
def test_an_extension_of_no_type_of_cloud_events_is_named(value: object) -> None:
    text = "1" + "0" * 5000 if value == 10**5000 else json.dumps(value)
    with pytest.raises(InvalidInput) as refused:
        read(structured()[:-1] + f',"own":{text}}}'.encode())
    assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", "own")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("7", "7"),
        ("7.0", "7"),
        ("7e0", "7"),
        ("-0", "0"),
        ("-2147483648.0", "-2147483648"),
        ("2147483647", "2147483647"),
    ],
)
def test_an_extension_may_be_an_integer_however_json_writes_it(number: str, text: str) -> None:
    draft = read(structured()[:-1] + f',"own":{number}}}'.encode())
    assert draft == structs.replace(read(structured()), attributes=f'{{"own":"{text}"}}')


def test_subject_and_extensions_become_attributes_in_both_modes() -> None:
    known = {"time": "2026-01-01T00:00:00Z", "dataschema": "/s", "partitionkey": "p", "tenantid": "acme"}
    more = {**known, "tracestate": "a=1", "subject": "order 1", "retries": 3, "urgent": True, "unset": None}
    draft = read(structured(data={}, **more))
    assert draft.attributes == '{"subject":"order 1","retries":"3","urgent":"true"}'
    headers: dict[str, Any] = {
        f"ce_{name}": str(value).replace("True", "true") for name, value in more.items() if value
    }
    assert binary(b"{}", **headers) == draft


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"subject": ""}, "subject"),
        ({"subject": "x" * 201}, "subject"),
        ({"own": "x" * 201}, "own"),
        ({f"own{number}": 1 for number in range(21)}, "own20"),
        ({"tracestate": 7}, "tracestate"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_attribute_that_would_not_fit_is_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(**changes))
    assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", field)


@pytest.mark.parametrize("data", [b'{"x": 1.10}', b"", b'"text"'])
def test_data_in_base64_is_what_a_body_of_the_same_bytes_is(data: bytes) -> None:
    encoded = structured(data_base64=base64.b64encode(data).decode())
    assert read(encoded) == binary(data)


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"data_base64": "AA=="}, "invalid_json"),
        ({"data_base64": "/w=="}, "body_not_utf8"),
        ({"data_base64": "e30"}, "invalid_cloud_event"),
        ({"data_base64": 1}, "invalid_cloud_event"),
        ({"data_base64": "e30=", "data": {}}, "invalid_cloud_event"),
    ],
)
def test_data_in_base64_has_to_be_json_and_alone(members: dict[str, object], code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(**members))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("media_type", "names", "is_binary"),
    [
        ("application/json", ["ce-specversion"], True),
        ("application/vnd.x+json", ["ce-id"], True),
        ("application/json", ["ce-own", "content-type"], False),
        ("application/cloudevents+json", ["ce-specversion"], False),
        ("application/cloudevents-batch+json", ["ce-specversion"], False),
    ],
)
def test_attributes_in_headers_make_binary_mode(media_type: str, names: list[str], is_binary: bool) -> None:
    assert is_binary_mode(media_type, names) is is_binary


def test_attributes_may_be_as_long_as_their_columns() -> None:
    draft = read(structured(id="i" * 255, source="s" * 255, type="t" * 100))
    assert (len(draft.external_id or ""), len(draft.source), len(draft.event_type)) == (255, 255, 100)


def test_extensions_a_media_type_and_a_time_may_be_as_many_and_as_long_as_the_rules_say() -> None:
    extensions = {f"own{number}": "x" for number in range(20)}
    assert len(json.loads(read(structured(**extensions)).attributes)) == 20
    media_type = "application/json;v=".ljust(200, "x")
    assert read(structured(datacontenttype=media_type)).event_type == "order.created"
    time = "2026-01-01T00:00:00." + "0" * 79 + "Z"
    assert read(structured(time=time)).event_type == "order.created"
    for longer in ({"datacontenttype": media_type + "x"}, {"time": time.replace("Z", "0Z")}):
        with pytest.raises(InvalidInput):
            read(structured(**longer))


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, {}),
        ({"subject": "s", "own": "x", "partitionkey": "k"}, {}),
        ({"traceparent": "x"}, {}),
        ({"traceparent": f" {TRACE}"}, {"traceparent": TRACE}),
        ({"tenantid": "acme", "tracestate": "a=1"}, {"tenantid": "acme", "tracestate": "a=1"}),
        ({"time": "2026-01-01T00:00:00Z", "dataschema": None}, {"time": "2026-01-01T00:00:00Z"}),
    ],
)
def test_what_no_field_of_an_event_holds_is_kept_beside_it(
    given: dict[str, object], kept: dict[str, str]
) -> None:
    assert json.loads(read(structured(**given)).cloud_event or "") == kept


@pytest.mark.parametrize(("name", "length"), [("id", 256), ("source", 256), ("type", 101)])
def test_a_longer_attribute_is_named(name: str, length: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(structured(**{name: "x" * length}))
    assert (refused.value.code, refused.value.field) == ("invalid_cloud_event", name)


@pytest.mark.parametrize(
    "kind", ["application/json", "application/cloudevents+json; charset=utf-8", "APPLICATION/JSON"]
)
def test_data_of_a_json_type_is_taken(kind: str) -> None:
    assert read(structured(datacontenttype=kind, data=1)).payload == "1"


def test_a_body_larger_than_the_limit_is_refused_in_both_modes() -> None:
    body = structured(data="x" * MAX)
    for refuse in (lambda: read(body), lambda: binary(body)):
        with pytest.raises(InvalidInput) as refused:
            refuse()
        assert refused.value.code == "body_too_large"


def test_binary_mode_writes_for_the_tenant_of_the_key() -> None:
    assert binary(tenant_id="acme").tenant_id == "acme"
    assert binary(ce_tenantid="b").tenant_id == "b"


def test_binary_mode_takes_numbers_that_python_does_not() -> None:
    for body in (b"1e400", b"9" * 5000):
        assert binary(body).payload == body.decode()


def test_other_headers_are_no_attributes() -> None:
    draft = binary(id="other", source="other")
    assert (draft.external_id, draft.source) == ("A-1", "/shop")
