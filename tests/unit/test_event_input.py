"""Parsing of events; the payload is passed on as the received bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_input import (
    MAX_DEPTH,
    MAX_QUOTED,
    EventDraft,
    check_event_type,
    check_idempotency_key,
    check_tenant,
    read_event,
)

MAX_BYTES = 262_144


def read(body: str | bytes, *keys: str, tenant: str | None = None, max_bytes: int = MAX_BYTES) -> EventDraft:
    data = body.encode() if isinstance(body, str) else body
    return read_event(data, max_bytes=max_bytes, idempotency_keys=keys, tenant_id=tenant)


def event(payload: str, event_type: str = "a") -> str:
    return f'{{"event_type": "{event_type}", "payload": {payload}}}'


def refusal(body: str | bytes, *keys: str, tenant: str | None = None) -> tuple[str, str, int]:
    with pytest.raises(InvalidInput) as refused:
        read(body, *keys, tenant=tenant)
    return refused.value.code, refused.value.field, refused.value.status


PAYLOADS = {
    "decimals": '{"a":1.10}',
    "integers past 64 bits": "12345678901234567890",
    "a number past doubles": "[1e400, -1E+999]",
    "more digits than Python reads": "9" * 5000 + "." + "1" * 5000,
    "exponents past every store": "[1e131072, 1e-20000, 1e999999999]",
    "a backslash and letters": r'"C:\\users\\u0000x"',
    "a name twice": '{"a":1,"a":2}',
    "escaped NUL": '{"a":"\\u0000"}',
    "blanks inside": '{ "a" :\t[ 1 ,\r\n2 ] }',
    "minus zero": "-0.0",
    "null": "null",
    "text that looks like an envelope": '"{\\"event_type\\": 1}"',
    "line separators": '"\u2028\u2029\U0001f600"',
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_is_taken_to_the_byte(payload: str) -> None:
    assert read(event(payload)) == EventDraft("a", payload)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(value=json_values, ascii_only=st.booleans(), indent=st.none() | st.integers(0, 3))
def test_any_json_value_is_taken_to_the_byte(value: object, ascii_only: bool, indent: int | None) -> None:
    payload = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    try:
        body = event(payload).encode()
    except UnicodeEncodeError:
        return
    assert read(body).payload == payload


@given(
    body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: event(text).encode(errors="replace"))
)
def test_whatever_comes_it_is_an_event_or_a_refusal(body: bytes) -> None:
    try:
        draft = read(body)
    except InvalidInput:
        return
    json.loads(draft.payload)


BAD_BODIES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "invalid_json"),
    "blanks": (b" \n", "invalid_json"),
    "half an object": (b'{"event_type": "a"', "invalid_json"),
    "two values": (event("1").encode() + b"{}", "invalid_json"),
    "NaN": (event("NaN").encode(), "invalid_json"),
    "Infinity": (event("-Infinity").encode(), "invalid_json"),
    "a trailing comma": (event("[1,]").encode(), "invalid_json"),
    "single quotes": (event("'a'").encode(), "invalid_json"),
    "a comment": (event("1 /* one */").encode(), "invalid_json"),
    "a raw NUL": (event('"\x00"').encode(), "invalid_json"),
    "a raw line end in text": (event('"\n"').encode(), "invalid_json"),
    "a byte-order mark": (b"\xef\xbb\xbf" + event("1").encode(), "body_not_utf8"),
    "UTF-16": (event("1").encode("utf-16"), "body_not_utf8"),
    "Latin-1": (event('"\xe9"').encode("latin-1"), "body_not_utf8"),
    "half a surrogate pair": (event('"\\ud83d"').encode(), "invalid_json"),
    "an encoded surrogate": (event('"').encode()[:-1] + b'\xed\xa0\xbd"}', "body_not_utf8"),
}


@pytest.mark.parametrize(("body", "code"), BAD_BODIES.values(), ids=BAD_BODIES)
def test_a_body_that_is_no_json_text_is_refused(body: bytes, code: str) -> None:
    assert refusal(body) == (code, "", 400)


BAD_EVENTS: dict[str, tuple[str, str]] = {
    "no payload": ('{"event_type": "a"}', "payload"),
    "no type": ('{"payload": 1}', "event_type"),
    "an unknown field": ('{"event_type": "a", "payload": 1, "extra": 1}', "extra"),
    "a type that is no text": ('{"event_type": 1, "payload": 1}', "event_type"),
    "a null type": ('{"event_type": null, "payload": 1}', "event_type"),
    "a tenant that is no text": ('{"event_type": "a", "payload": 1, "tenant_id": 5}', "tenant_id"),
}


@pytest.mark.parametrize(("body", "field"), BAD_EVENTS.values(), ids=BAD_EVENTS)
def test_an_event_that_is_not_whole_is_refused_by_its_field(body: str, field: str) -> None:
    assert refusal(body) == ("invalid_event", field, 422)


@pytest.mark.parametrize("body", ["[]", '"text"', "1", "null"])
def test_a_body_that_is_no_object_is_refused(body: str) -> None:
    assert refusal(body) == ("invalid_event", "", 422)


def test_of_a_name_that_is_repeated_in_the_envelope_the_last_counts() -> None:
    body = '{"event_type": "a", "event_type": "b", "payload": 1, "payload": 2}'
    assert read(body) == EventDraft("b", "2")


def test_depth_is_bounded_for_arrays_objects_and_mixtures() -> None:
    inside = MAX_DEPTH - 1  # the envelope is one level
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")):
        deep = inside // opening.replace('"a":', "").__len__()
        assert read(event(opening * deep + "1" + closing * deep))
        assert refusal(event(opening * (deep + 1) + "1" + closing * (deep + 1)))[0] == "body_too_deep"


@pytest.mark.parametrize("text", ["[" * 500, '\\"' + "{" * 500, "\\\\", '[\\"]' * 200])
def test_brackets_in_text_are_no_depth(text: str) -> None:
    assert read(event(f'"{text}"')).payload == f'"{text}"'


def test_many_brackets_side_by_side_are_no_depth() -> None:
    assert read(event("[" + ",".join(["[]"] * 5_000) + "]"))


@pytest.mark.timeout(10)
def test_a_hostile_depth_is_refused_without_much_work() -> None:
    assert refusal(b"[" * 260_000)[0] == "body_too_deep"
    assert refusal(b'{"a":' * 50_000)[0] == "body_too_deep"
    assert refusal(b'"\\' * 130_000)[0] == "invalid_json"


def test_a_body_may_be_as_large_as_the_limit_and_not_larger() -> None:
    body = event('"x"').encode()
    assert read(body, max_bytes=len(body)).payload == '"x"'
    with pytest.raises(InvalidInput) as refused:
        read(body, max_bytes=len(body) - 1)
    assert (refused.value.code, refused.value.status) == ("body_too_large", 413)


@pytest.mark.parametrize("name", ["a", "order.created", "A_z0-9/:.", "x" * 100])
def test_names_that_are_taken(name: str) -> None:
    assert check_event_type(name) == name
    assert check_tenant(name, None) == name


@pytest.mark.parametrize(
    "name", ["", "x" * 101, "a b", "a\n", "\na", "a\x00", "\u00e9", "a*", "\u0661", "a\u200b"]
)
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as bad_type:
        check_event_type(name)
    assert (bad_type.value.code, bad_type.value.field) == ("invalid_event_type", "event_type")
    with pytest.raises(InvalidInput) as bad_tenant:
        check_tenant(name, None)
    assert (bad_tenant.value.code, bad_tenant.value.status) == ("invalid_tenant_id", 422)


@pytest.mark.parametrize("name", ["hooksaga.subscription.disabled", "hooksaga."])
def test_types_of_operational_events_are_reserved(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event_type(name)
    assert (refused.value.code, refused.value.status) == ("reserved_event_type", 422)
    assert check_event_type("hooksaga") == "hooksaga"


@pytest.mark.parametrize(
    ("asked", "allowed", "tenant"),
    [(None, None, "default"), (None, "acme", "acme"), ("acme", "acme", "acme"), ("other", None, "other")],
)
def test_the_tenant_to_write_for(asked: str | None, allowed: str | None, tenant: str) -> None:
    assert check_tenant(asked, allowed) == tenant


@pytest.mark.parametrize("asked", ["default", "Acme", "acme2"])
def test_a_key_of_one_tenant_writes_for_no_other(asked: str) -> None:
    body = f'{{"event_type": "a", "payload": 1, "tenant_id": "{asked}"}}'
    assert refusal(body, tenant="acme") == ("tenant_not_allowed", "tenant_id", 403)


@pytest.mark.parametrize("key", ["k", "k" * 255, "a", "a key, with ~ signs!"])
def test_idempotency_keys_that_are_taken_as_they_are(key: str) -> None:
    assert check_idempotency_key([key]) == key


@pytest.mark.parametrize(
    "keys",
    [
        [""],
        ["k" * 256],
        ["a", "b"],
        ["a", "a"],
        ["\u00e9"],
        ["a\tb"],
        ["a\n"],
        ["\x7f"],
        [" "],
        [" a"],
        ["a "],
    ],
)
def test_idempotency_keys_that_are_refused(keys: list[str]) -> None:
    assert refusal(event("1"), *keys) == ("invalid_idempotency_key", "Idempotency-Key", 422)


def test_without_the_header_there_is_no_key() -> None:
    assert read(event("1")).external_id is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[" * (MAX_DEPTH + 1) + b'\\"' * 130_000, "body_too_deep"),
        (b'{"' * (MAX_DEPTH + 1) + b'\\"' * 130_000, "invalid_json"),
        (b'{"event_type":"a","payload":1,"' + b' - at `\\"' * 29_000 + b'`":1}', "invalid_event"),
    ],
    ids=["strings that never end", "keys that never end", "a name like the end of an error"],
)
def test_no_body_takes_the_square_of_its_length_to_be_refused(body: bytes, code: str) -> None:
    """All else stands still meanwhile: each took minutes."""
    with pytest.raises(InvalidInput) as refused:
        read(body)
    assert refused.value.code == code
    assert len(str(refused.value)) + len(refused.value.field) < 1000


@pytest.mark.parametrize(
    ("length", "said"), [(MAX_QUOTED, "x" * MAX_QUOTED), (MAX_QUOTED + 1, "x" * MAX_QUOTED + "…")]
)
def test_a_name_is_repeated_as_far_as_it_can_be_read(length: int, said: str) -> None:
    assert refusal(f'{{"event_type": "a", "payload": 1, "{"x" * length}": 1}}') == (
        "invalid_event",
        said,
        422,
    )


def test_a_name_like_the_end_of_an_error_is_a_name() -> None:
    with pytest.raises(InvalidInput) as refused:
        read('{"event_type": "a", "payload": 1, "b - at `$.c - at `$.d": 1}')
    assert "unknown field `b - at `$.c" in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        read('{"event_type": 1, "payload": 1}')
    assert str(refused.value) == "the event is invalid: Expected `str`, got `int`"


@pytest.mark.parametrize("deep", [MAX_DEPTH - 1, MAX_DEPTH])
@pytest.mark.parametrize("beside", ["", "[]", "{}", "[[]]", '"["', "[], []"])
def test_what_stands_beside_counts_for_no_depth(deep: int, beside: str) -> None:
    """The envelope is one level of them."""
    first = f"{beside}, " if beside else ""
    payload = f"[{first}" + "[" * (deep - 1) + "]" * (deep - 1) + "]"
    if deep < MAX_DEPTH:
        assert read(event(payload)).payload == payload
    else:
        assert refusal(event(payload))[0] == "body_too_deep"


@pytest.mark.parametrize("text", ["\\ud83d\\ude00", "caf\u00e9", "\\\\ud800"])
def test_nobody_is_told_of_surrogates_where_there_is_no_half_of_one(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(f'{{"event_type": "{text}", }}')
    assert "surrogate" not in str(refused.value)
