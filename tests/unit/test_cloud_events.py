"""A CloudEvent becomes the event that it says, or is refused by a rule that names the attribute."""

import json

import pytest

from shared.core.cloud_events import read_binary, read_structured
from shared.core.errors import InvalidInput

MAX = 10_000
GOOD = {"specversion": "1.0", "id": "A-1", "source": "/shop", "type": "order.created"}
BINARY = {"ce-specversion": "1.0", "ce-id": "A-1", "ce-source": "/shop", "ce-type": "order.created"}


def structured(**changes: object) -> bytes:
    return json.dumps(
        {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    ).encode()


def read(body: bytes, tenant_id: str | None = None):
    return read_structured(body, max_bytes=MAX, tenant_id=tenant_id)


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


def test_missing_data_is_null_and_extensions_are_allowed() -> None:
    draft = read(structured(time="2026-01-01T00:00:00Z", subject="x", traceparent="00-1", tenantid="acme"))
    assert (draft.payload, draft.tenant_id) == ("null", "acme")


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
        ({"data_base64": "AA=="}, "data_base64"),
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
    draft = read_binary({**BINARY, "ce-id": "Z%C3%BC%201"}, b' {"a": 1.10} ', max_bytes=MAX, tenant_id=None)
    assert (draft.payload, draft.external_id) == (' {"a": 1.10} ', "Zü 1")


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"ce-id": "%FF"}, b"{}"),
        ({"ce-type": ""}, b"{}"),
        ({}, b"NaN"),
        ({}, b"\xff"),
        ({}, b""),
    ],
)
def test_binary_mode_refuses_by_a_rule(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_binary({**BINARY, **headers}, body, max_bytes=MAX, tenant_id=None)


def test_attributes_may_be_as_long_as_their_columns() -> None:
    draft = read(structured(id="i" * 255, source="s" * 255, type="t" * 100))
    assert (len(draft.external_id or ""), len(draft.source), len(draft.event_type)) == (255, 255, 100)


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
    for refuse in (lambda: read(body), lambda: read_binary(BINARY, body, max_bytes=MAX, tenant_id=None)):
        with pytest.raises(InvalidInput) as refused:
            refuse()
        assert refused.value.code == "body_too_large"


def test_binary_mode_writes_for_the_tenant_of_the_key() -> None:
    assert read_binary(BINARY, b"1", max_bytes=MAX, tenant_id="acme").tenant_id == "acme"
    assert read_binary({**BINARY, "ce-tenantid": "b"}, b"1", max_bytes=MAX, tenant_id=None).tenant_id == "b"


def test_binary_mode_takes_numbers_that_python_does_not() -> None:
    for body in (b"1e400", b"9" * 5000):
        assert read_binary(BINARY, body, max_bytes=MAX, tenant_id=None).payload == body.decode()


def test_other_headers_are_no_attributes() -> None:
    draft = read_binary({**BINARY, "id": "other", "source": "other"}, b"1", max_bytes=MAX, tenant_id=None)
    assert (draft.external_id, draft.source) == ("A-1", "/shop")
