"""Exact texts of error details: a caller has nothing else to find the error by.

A star stands for text of the JSON library, which may change with its version.
"""

import json
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from hooksaga.core.cloud_events import read_binary, read_structured
from hooksaga.core.custom_headers import check_custom_headers
from hooksaga.core.errors import Conflict, InvalidInput, NotFound
from hooksaga.core.event_input import (
    EVENT_TYPE_RULE,
    OWN_SOURCE,
    RESERVED_PREFIX,
    check_event_type,
    check_idempotency_key,
    check_json_syntax,
    check_json_text,
    check_ordering_key,
    check_tenant,
    read_batch,
    read_event,
)

Read = Callable[[bytes], Any]

GOOD = {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}


def event(body: bytes) -> Any:
    return read_event(body, max_bytes=100, idempotency_keys=[], tenant_id=None)


def batch(body: bytes) -> Any:
    return read_batch(body, max_bytes=100_000, item_max_bytes=100, tenant_id=None)


def cloud_event(body: bytes) -> Any:
    return read_structured(body, max_bytes=1000, tenant_id=None)


def binary(name: str, value: str) -> Read:
    good = {f"ce-{attribute}": text for attribute, text in GOOD.items()}
    return lambda body: read_binary([*{**good, name: value}.items()], body, max_bytes=1000, tenant_id=None)


BODIES: dict[str, tuple[Read, bytes, tuple[str, str, int], str]] = {
    "too large": (
        event,
        b" " * 101,
        ("body_too_large", "", 413),
        "the body must be at most 100 bytes, not 101",
    ),
    "empty": (event, b"", ("invalid_json", "", 400), "the body must be a JSON object, not empty"),
    "UTF-8 with a mark": (
        event,
        b"\xef\xbb\xbf{}",
        ("body_not_utf8", "", 400),
        "the body must be UTF-8 without a byte-order mark",
    ),
    "UTF-16, little end first": (
        event,
        b"\xff\xfe{\0",
        ("body_not_utf8", "", 400),
        "the body must be UTF-8 without a byte-order mark",
    ),
    "UTF-16, big end first": (
        event,
        b"\xfe\xff\0{",
        ("body_not_utf8", "", 400),
        "the body must be UTF-8 without a byte-order mark",
    ),
    "Latin-1": (
        event,
        b'"caf\xe9"',
        ("body_not_utf8", "", 400),
        "the body must be UTF-8: byte 4 is invalid",
    ),
    "too deep": (
        lambda body: check_json_text(body, 10_000, 3),
        b"[[[[]]]]",
        ("body_too_deep", "", 400),
        "the body must be nested at most 3 levels deep",
    ),
    "cut short": (
        event,
        b"{",
        ("invalid_json", "", 400),
        "the body is not valid JSON: *[a-z0-9)]",
    ),
    "half a pair": (
        event,
        b'{"event_type": "\\ud800"}',
        ("invalid_json", "", 400),
        (
            "the body is not valid JSON: *[a-z0-9)]; it contains an unpaired surrogate escape, "
            "perhaps of a truncated character"
        ),
    ),
    "no field": (
        event,
        b'{"event_type": "a"}',
        ("invalid_event", "payload", 422),
        "the event is invalid: *`payload`",
    ),
    "another kind": (
        event,
        b'{"event_type": 1, "payload": 1}',
        ("invalid_event", "event_type", 422),
        "the event is invalid: *`int`",
    ),
    "no items": (
        batch,
        b'{"items": []}',
        ("invalid_batch", "items", 422),
        "items must contain 1 to 500 events, not 0",
    ),
    "no object": (
        cloud_event,
        b"[]",
        ("invalid_cloud_event", "", 422),
        "a CloudEvent must be a JSON object",
    ),
    "a long odd name": (
        cloud_event,
        b'{"' + b"A" * 60 + b'": 1}',
        ("invalid_cloud_event", "A" * 50, 422),
        "A" * 50 + ": attribute names must have 1 to 50 lower-case letters and digits",
    ),
    "data that is no base64": (
        cloud_event,
        b'{"data_base64": "?"}',
        ("invalid_cloud_event", "data_base64", 422),
        "data_base64: must be base64",
    ),
    "data that is no text": (
        cloud_event,
        b'{"data_base64": true}',
        ("invalid_cloud_event", "data_base64", 422),
        "data_base64: must be a string",
    ),
    "data that is a number": (
        cloud_event,
        b'{"data_base64": 1234}',
        ("invalid_cloud_event", "data_base64", 422),
        "data_base64: must be a string",
    ),
    "data twice": (
        cloud_event,
        b'{"data_base64": "", "data": null}',
        ("invalid_cloud_event", "data_base64", 422),
        "data_base64: must not be sent together with data",
    ),
    "an extension of no type": (
        cloud_event,
        b'{"own": []}',
        ("invalid_cloud_event", "own", 422),
        "own: must be a string, a boolean or a 32-bit integer",
    ),
    "too many extensions": (
        cloud_event,
        json.dumps(GOOD | {f"own{number}": 1 for number in range(21)}).encode(),
        ("invalid_cloud_event", "own20", 422),
        "own20: is one of more than 20 extension attributes",
    ),
    "a time that is none": (
        binary("ce-time", "yesterday"),
        b"{}",
        ("invalid_cloud_event", "time", 422),
        "time: must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z, of at most 100 characters",
    ),
    "a control character": (
        cloud_event,
        rb'{"own": "\u0085"}',
        ("invalid_cloud_event", "own", 422),
        "own: must not contain control characters or noncharacters",
    ),
    "a raw letter outside ASCII": (
        binary("ce-id", "\xe9"),
        b"{}",
        ("invalid_cloud_event", "id", 422),
        "id: must be printable ASCII; percent-encode other characters and % as UTF-8",
    ),
    "the type twice": (
        binary("ce-datacontenttype", "application/json"),
        b"{}",
        ("invalid_cloud_event", "datacontenttype", 422),
        "datacontenttype: must be sent as the Content-Type header in binary mode",
    ),
    "an attribute that is no text": (
        cloud_event,
        b'{"id": 1}',
        ("invalid_cloud_event", "id", 422),
        "id: must be a string",
    ),
    "no version": (
        cloud_event,
        b"{}",
        ("invalid_cloud_event", "specversion", 422),
        'specversion: is required, and must be "1.0"',
    ),
    "data of another kind": (
        binary("content-type", "text/xml"),
        b"{}",
        ("invalid_cloud_event", "datacontenttype", 422),
        "datacontenttype: must be JSON in UTF-8: */json or */*+json, at most 200 characters",
    ),
    "no source": (
        binary("ce-source", ""),
        b"{}",
        ("invalid_cloud_event", "source", 422),
        f'source: must have 1 to 255 characters; "{OWN_SOURCE}" is reserved for operational events',
    ),
    "a source of our own": (
        binary("ce-source", OWN_SOURCE),
        b"{}",
        ("invalid_cloud_event", "source", 422),
        f'source: must have 1 to 255 characters; "{OWN_SOURCE}" is reserved for operational events',
    ),
    "a broken percent sign": (
        binary("ce-id", "%ff"),
        b"{}",
        ("invalid_cloud_event", "id", 422),
        "id: must be UTF-8 after percent-decoding",
    ),
    "NaN": (
        binary("ce-id", "1"),
        b"NaN",
        ("invalid_json", "", 400),
        "the body is not valid JSON: *[a-z0-9)]",
    ),
    "a cloud event cut short": (
        cloud_event,
        b"{",
        ("invalid_json", "", 400),
        "the body is not valid JSON: *[a-z0-9)]",
    ),
    "syntax alone": (
        check_json_syntax,
        b"[1,]",
        ("invalid_json", "", 400),
        "the body is not valid JSON: *[a-z0-9)]",
    ),
}


@pytest.mark.parametrize(("read", "body", "told", "message"), BODIES.values(), ids=BODIES)
def test_a_body_is_refused_in_so_many_words(
    read: Read, body: bytes, told: tuple[str, str, int], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(body)
    assert (refused.value.code, refused.value.field, refused.value.status) == told
    assert fnmatchcase(str(refused.value), message)
    assert "None" not in str(refused.value)


VALUES: dict[str, tuple[Callable[[], object], tuple[str, str, int], str]] = {
    "a type": (
        lambda: check_event_type("a b"),
        ("invalid_event_type", "event_type", 422),
        f"event_type must have {EVENT_TYPE_RULE}",
    ),
    "a type of our own": (
        lambda: check_event_type(f"{RESERVED_PREFIX}x"),
        ("reserved_event_type", "event_type", 422),
        f"event_type must not begin with {RESERVED_PREFIX}, which is reserved for operational events",
    ),
    "a tenant": (
        lambda: check_tenant("a b", None),
        ("invalid_tenant_id", "tenant_id", 422),
        f"tenant_id must have {EVENT_TYPE_RULE}",
    ),
    "another's tenant": (
        lambda: check_tenant("b", "a"),
        ("tenant_not_allowed", "tenant_id", 403),
        "tenant_id must be the caller's own tenant",
    ),
    "an ordering key": (
        lambda: check_ordering_key(""),
        ("invalid_ordering_key", "ordering_key", 422),
        "ordering_key has 1 to 255 characters, none of them a control character",
    ),
    "two keys": (
        lambda: check_idempotency_key(["a", "b"]),
        ("invalid_idempotency_key", "Idempotency-Key", 422),
        "Idempotency-Key must be sent once",
    ),
    "an odd key": (
        lambda: check_idempotency_key(["\t"]),
        ("invalid_idempotency_key", "Idempotency-Key", 422),
        "Idempotency-Key must have 1 to 255 printable ASCII characters, without surrounding spaces",
    ),
}


@pytest.mark.parametrize(("check", "told", "message"), VALUES.values(), ids=VALUES)
def test_a_value_is_refused_in_so_many_words(
    check: Callable[[], object], told: tuple[str, str, int], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check()
    assert (refused.value.code, refused.value.field, refused.value.status) == told
    assert str(refused.value) == message


HEADERS: dict[str, tuple[dict[str, str], str]] = {
    "too many": ({f"x-{n}": "1" for n in range(21)}, "at most 20 headers are allowed, not 21"),
    "twice": ({"X-A": "1", "x-a": "2"}, "a header name occurs twice in different case"),
    "no name": ({"x y": "1"}, "'x y' is not a header name: use 1 to 100 letters, digits or !#$%&'*+.^_`|~-"),
    "ours": ({"Webhook-ID": "1"}, "webhook-id is set by hooksaga and cannot be replaced"),
    "the mask": ({"X-A": "***"}, "the value of x-a must not be ***, which masks stored values"),
    "no value": (
        {"X-A": ""},
        "the value of x-a must be 1 to 1024 printable ASCII characters without surrounding spaces",
    ),
}


@pytest.mark.parametrize(("headers", "message"), HEADERS.values(), ids=HEADERS)
def test_headers_are_refused_in_so_many_words(headers: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_custom_headers(headers)


@pytest.mark.parametrize("kind", [NotFound, Conflict])
def test_an_error_has_its_code_and_its_words(kind: type[NotFound | Conflict]) -> None:
    error = kind("saga_not_found", "there is no saga 7")
    assert (error.code, str(error)) == ("saga_not_found", "there is no saga 7")
