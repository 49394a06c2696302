"""Bodies that are no event: each is refused with a code of its own, and nothing is stored."""

import gzip
import json

import pytest

from tests.api.http_client import Answer, Api, assert_problem, event_body
from tests.api.running_system import RunningSystem
from tests.api.seeding import LIMIT, body_of

pytestmark = pytest.mark.hostile("Clients")

NOT_JSON = {
    "empty": b"",
    "blank": b" \r\n\t ",
    "NaN": event_body("t", b"NaN"),
    "Infinity": event_body("t", b'{"x":Infinity}'),
    "minus Infinity": event_body("t", b"[-Infinity]"),
    "nan as the whole body": b"NaN",
    "comma at the end": event_body("t", b'{"a":1,}'),
    "leading zero": event_body("t", b"[012]"),
    "bare point": event_body("t", b"[1.]"),
    "plus": event_body("t", b"[+1]"),
    "hexadecimal": event_body("t", b"0x10"),
    "single quotes": event_body("t", b"{'a':1}"),
    "comment": event_body("t", b"/* no */1"),
    "two values": event_body("t", b"1 2"),
    "text behind the end": event_body("t") + b"x",
    "NUL behind the end": event_body("t") + b"\x00",
    "raw NUL in a string": event_body("t", b'"a\x00b"'),
    "raw line end in a string": event_body("t", b'"a\nb"'),
    "escape that is none": event_body("t", rb'"\x41"'),
    "cut escape": event_body("t", rb'"\u12"'),
    "lone high surrogate": event_body("t", rb'{"a":"\ud800 and text behind"}'),
    "lone low surrogate": event_body("t", rb'{"a":"\udc00 and text behind"}'),
    "surrogate in a name": event_body("t", rb'{"\ud800":1,"and":"text behind"}'),
    "lone surrogate as type": rb'{"event_type":"\ud800","payload":1}',
    "cut off": b'{"event_type":"t","payload":{"a":',
    "string without end": b'{"event_type":"t","payload":"a',
    "UTF-16 without mark": '{"event_type":"t","payload":1}'.encode("utf-16-le"),
    "form": b"event_type=t&payload=1",
    "base64 of an event": b"eyJldmVudF90eXBlIjoidCIsInBheWxvYWQiOnt9fQ==",
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
def test_not_json(running: RunningSystem, api: Api, body: bytes) -> None:
    with running.nothing_stored():
        assert_problem(api.post_event(body), 400, "invalid_json")


NOT_UTF8 = {
    "raw ff": event_body("t", b'"\xff"'),
    "overlong slash": event_body("t", b'"\xc0\xaf"'),
    "encoded surrogate": event_body("t", b'"\xed\xa0\x80"'),
    "over the last code point": event_body("t", b'"\xf4\x90\x80\x80"'),
    "Latin-1": event_body("t", '"café"'.encode("latin-1")),
    "cut in a character": event_body("t", '"€'.encode())[:-2],
    "UTF-8 with a byte-order mark": b"\xef\xbb\xbf" + event_body("t"),
    "UTF-16 with a byte-order mark": event_body("t").decode().encode("utf-16"),
    "UTF-32 with a byte-order mark": event_body("t").decode().encode("utf-32"),
    "gzip without saying so": gzip.compress(event_body("t")),
}


@pytest.mark.parametrize("body", NOT_UTF8.values(), ids=NOT_UTF8)
def test_not_utf8(running: RunningSystem, api: Api, body: bytes) -> None:
    with running.nothing_stored():
        assert_problem(api.post_event(body), 400, "body_not_utf8")


NO_EVENT = {
    "null": (b"null", "invalid_event", None),
    "number": (b"3", "invalid_event", None),
    "string": (b'"x"', "invalid_event", None),
    "list": (b"[]", "invalid_event", None),
    "empty object": (b"{}", "invalid_event", "event_type"),
    "no type": (b'{"payload":1}', "invalid_event", "event_type"),
    "no payload": (b'{"event_type":"t"}', "invalid_event", "payload"),
    "type is a number": (b'{"event_type":1,"payload":1}', "invalid_event", "event_type"),
    "type is null": (b'{"event_type":null,"payload":1}', "invalid_event", "event_type"),
    "tenant is a list": (b'{"event_type":"t","payload":1,"tenant_id":[]}', "invalid_event", "tenant_id"),
    "unknown field": (b'{"event_type":"t","payload":1,"more":2}', "invalid_event", "more"),
    "field in other case": (b'{"event_type":"t","Payload":1}', "invalid_event", "Payload"),
    "empty type": (event_body(""), "invalid_event_type", "event_type"),
    "long type": (event_body("t" * 101), "invalid_event_type", "event_type"),
    "blank in type": (event_body("a b"), "invalid_event_type", "event_type"),
    "umlaut in type": (event_body("größe"), "invalid_event_type", "event_type"),
    "wide digit in type": (event_body("t\uff11"), "invalid_event_type", "event_type"),
    "line end after type": (event_body(r"t\n"), "invalid_event_type", "event_type"),
    "NUL in type": (event_body(r"t\u0000"), "invalid_event_type", "event_type"),
    "wildcard type": (event_body("*"), "invalid_event_type", "event_type"),
    "empty tenant": (b'{"event_type":"t","payload":1,"tenant_id":""}', "invalid_tenant_id", "tenant_id"),
    "NUL in tenant": (
        rb'{"event_type":"t","payload":1,"tenant_id":"\u0000"}',
        "invalid_tenant_id",
        "tenant_id",
    ),
}


@pytest.mark.parametrize(("body", "code", "field"), NO_EVENT.values(), ids=NO_EVENT)
def test_json_but_no_event(
    running: RunningSystem, api: Api, body: bytes, code: str, field: str | None
) -> None:
    with running.nothing_stored():
        assert_problem(api.post_event(body), 422, code, field)


def test_every_allowed_letter_makes_a_type_and_a_tenant(api: Api) -> None:
    name = "AZaz09_.:/-" + "x" * 89
    body = json.dumps({"event_type": name, "tenant_id": name, "payload": None}).encode()
    answer = api.post_event(body)
    assert answer.status == 202
    shown = api.get(f"/v1/events/{answer.json()['id']}").json()
    assert (shown["event_type"], shown["tenant_id"]) == (name, name)


def test_repeated_name_in_the_envelope_counts_as_its_last_value(running: RunningSystem, api: Api) -> None:
    body = b'{"event_type":"first","payload":1,"event_type":"last","payload":{"b":2}}'
    answer = api.post_event(body)
    assert answer.status == 202
    shown = api.get(f"/v1/events/{answer.json()['id']}")
    assert shown.json()["event_type"] == "last"
    assert shown.body.endswith(b',"payload":{"b":2}}')
    with running.nothing_stored():
        refused = api.post_event(b'{"event_type":"t","payload":1,"event_type":""}')
        assert_problem(refused, 422, "invalid_event_type", "event_type")


FILLINGS = {
    "letters": b"a",
    "four-byte characters": "😀".encode(),
    "escaped quotes": rb"\"",
    "control escapes": rb"\u0000",
    "backslashes": rb"\\",
}


@pytest.mark.parametrize("filling", FILLINGS.values(), ids=FILLINGS)
def test_the_limit_is_counted_in_bytes_as_they_come(running: RunningSystem, api: Api, filling: bytes) -> None:
    for size in (LIMIT - 1, LIMIT):
        body = body_of(size, filling)
        assert len(body) == size
        answer = api.post_event(body)
        assert answer.status == 202
        shown = api.get(f"/v1/events/{answer.json()['id']}")
        assert shown.body.endswith(
            body[len(b'{"event_type":"big",') :].replace(b'"payload"', b',"payload"', 1)
        )
    with running.nothing_stored():
        assert_problem(api.post_event(body_of(LIMIT + 1, filling)), 413, "body_too_large")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_bounded_at_sixty_four(running: RunningSystem, api: Api, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"

    def nested(levels: int) -> bytes:
        return event_body("deep", opening * (levels - 1) + b"1" + closing * (levels - 1))

    assert api.post_event(nested(64)).status == 202
    with running.nothing_stored():
        assert_problem(api.post_event(nested(65)), 400, "body_too_deep")
        assert_problem(api.post_event(nested(20_000)), 400, "body_too_deep")
        assert_problem(api.post_event(opening * 40_000), 400, "body_too_deep")


def test_brackets_in_strings_are_not_nesting(api: Api) -> None:
    assert api.post_event(event_body("flat", b'"' + b"[{" * 5000 + b'\\"[["')).status == 202
    assert api.post_event(event_body("wide", b"[" + b"[]," * 5000 + b"{}]")).status == 202


CONTENT_TYPES = {
    "application/json": 202,
    "Application/JSON": 202,
    "application/json; charset=utf-8": 202,
    'application/json;charset="UTF-8"': 202,
    "application/json ; Charset=utf8": 202,
    "application/json; profile=x": 202,
    "": 202,
    "application/json; charset=utf-16": "unsupported_charset",
    "application/json; charset=utf-7": "unsupported_charset",
    "application/json; charset=bogus": "unsupported_charset",
    "application/json; charset=": "unsupported_charset",
    "application/json; charset=iso-8859-1": "unsupported_charset",
    "text/plain": "unsupported_media_type",
    "application/x-www-form-urlencoded": "unsupported_media_type",
    "multipart/form-data; boundary=x": "unsupported_media_type",
    "application/octet-stream": "unsupported_media_type",
    "application/xml": "unsupported_media_type",
    "application/jsonx": "unsupported_media_type",
    "application/json, text/plain": "unsupported_media_type",
    "json": "unsupported_media_type",
}


@pytest.mark.parametrize(("content_type", "wanted"), CONTENT_TYPES.items(), ids=list(CONTENT_TYPES))
def test_content_types(running: RunningSystem, api: Api, content_type: str, wanted: int | str) -> None:
    if wanted == 202:
        assert api.post_event(event_body("typed"), content_type=content_type).status == 202
        return
    with running.nothing_stored():
        answer = api.post_event(event_body("typed"), content_type=content_type)
        assert_problem(answer, 415, str(wanted))


def test_no_content_type_is_taken_for_json(api: Api) -> None:
    assert api.post_event(event_body("untyped"), content_type=None).status == 202


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip", "bogus"])
def test_compressed_bodies_are_refused(running: RunningSystem, api: Api, encoding: str) -> None:
    with running.nothing_stored():
        answer = api.post_event(gzip.compress(event_body("t")), ("content-encoding", encoding))
        assert_problem(answer, 415, "body_compressed")
    assert api.post_event(event_body("t"), ("content-encoding", "identity")).status == 202


REQUESTS_WITH_BODIES = {
    "subscription": ("POST", "/v1/subscriptions"),
    "change": ("PATCH", "/v1/subscriptions/1"),
    "requeue": ("POST", "/v1/dead-letters/requeue"),
}


@pytest.mark.parametrize(("method", "target"), REQUESTS_WITH_BODIES.values(), ids=REQUESTS_WITH_BODIES)
def test_the_rules_for_bodies_are_the_same_on_every_route(
    running: RunningSystem, api: Api, method: str, target: str
) -> None:
    def call(
        body: bytes, *headers: tuple[str, str | bytes], content_type: str = "application/json"
    ) -> Answer:
        return api.call(method, target, body, *headers, content_type=content_type)

    with running.nothing_stored():
        assert_problem(call(b"{"), 400, "invalid_json")
        assert_problem(call(b'{"a":NaN}'), 400, "invalid_json")
        assert_problem(call(b'{"limit":NaN,"limit":1}'), 400, "invalid_json")
        assert_problem(call(b'{"description":"\\ud800 and text behind"}'), 400, "invalid_json")
        assert_problem(call(b"\xef\xbb\xbf{}"), 400, "body_not_utf8")
        assert_problem(call(b'{"a":"\xff"}'), 400, "body_not_utf8")
        assert_problem(call("{}".encode("utf-16")), 400, "body_not_utf8")
        assert_problem(call(b"[" * 65), 400, "body_too_deep")
        assert_problem(call(b" " * LIMIT + b"{}"), 413, "body_too_large")
        assert_problem(call(gzip.compress(b"{}"), ("content-encoding", "gzip")), 415, "body_compressed")
        assert_problem(call(b"{}", content_type="text/plain"), 415, "unsupported_media_type")
        assert_problem(call(b"{}", content_type="application/json;charset=x"), 415, "unsupported_charset")
        for not_an_object in (b"null", b"[]", b"3", b'"{}"'):
            assert_problem(call(not_an_object), 422, "invalid_field")
