"""POST /v1/events: what is accepted is stored once, and comes back to the byte."""

import json
import socket
import uuid

import pytest

from tests.api.http_client import Answer, Api, assert_problem, event_body, read_answer, request_bytes
from tests.api.running_system import RunningSystem, new_name

ODD_PAYLOADS = [
    b'{"a":1.0,"b":0.10,"c":1E3,"d":-0,"e":1e-7,"f":1.10,"g":12345678901234567890}',
    b'{"x":1e400,"y":-1e400,"z":1e131072,"w":1e-20000,"v":1e999999999}',
    b'{"x":' + b"9" * 5000 + b',"y":-' + b"1" * 4301 + b',"z":0.' + b"7" * 5000 + b"}",
    b'{"amount":1,"amount":2,"id":"a","id":"b"}',
    b'{ "z" : 1 ,\r\n  "a":\t[ 1,2 , 3 ]\r\n}',
    rb'{"a":"\u0000","b":"C:\\users\\u0000x","c":"\\\\u0000","d":"\/","e":"\ud83d\ude00"}',
    '{"text":"žluťoučký 😀 \u2028 \x7f"}'.encode(),
    b'""',
    b"null",
    b"false",
    b"-0.0",
    b"[]",
    b"[" * 63 + b"]" * 63,
    b'"[[[[{{{{ \\" [[[["',
    b'"ZXZlbnRfdHlwZQ=="',
]


def accepted(answer: Answer) -> dict[str, object]:
    assert answer.status == 202, answer
    assert answer.headers["content-type"] == "application/json"
    event = answer.json()
    assert set(event) == {"id", "event_type", "created_at", "duplicate"}
    assert event["duplicate"] is False
    assert event["created_at"].endswith("Z")
    return event


@pytest.mark.parametrize("payload", ODD_PAYLOADS, ids=range(len(ODD_PAYLOADS)))
def test_payload_comes_back_byte_for_byte(running: RunningSystem, api: Api, payload: bytes) -> None:
    event = accepted(api.post_event(event_body("odd", payload)))
    shown = api.get(f"/v1/events/{event['id']}")
    assert shown.status == 200
    assert shown.body.endswith(b',"payload":' + payload + b"}")
    kept = running.rows(
        "SELECT payload::text FROM events WHERE webhook_id = %s", uuid.UUID(str(event["id"])[4:])
    )
    assert kept[0]["payload"].encode() == payload


def test_blanks_around_the_payload_are_not_part_of_it(api: Api) -> None:
    event = accepted(api.post_event(b' {\n "payload" : \t{"a": 1} \r\n, "event_type" : "blank" }\r\n '))
    assert api.get(f"/v1/events/{event['id']}").body.endswith(b',"payload":{"a": 1}}')


def test_equal_events_without_a_key_are_two_events(api: Api) -> None:
    first, second = (accepted(api.post_event(event_body("twice"))) for _ in range(2))
    assert first["id"] != second["id"]


def test_unknown_and_malformed_event_ids_are_not_found(api: Api) -> None:
    known = str(accepted(api.post_event(event_body("known")))["id"])
    unknown = [
        "evt_" + "0" * 32,
        known.upper(),
        known[:-1],
        known + "0",
        known[4:],
        "1",
        "evt_" + "g" * 32,
        "%00",
        "evt_%20",
        "x" * 2000,
    ]
    for wrong in unknown:
        assert_problem(api.get(f"/v1/events/{wrong}"), 404, "event_not_found")
    assert api.get(f"/v1/events/{known}").status == 200


def test_repeat_with_the_same_key_and_content_gives_the_first_answer(
    running: RunningSystem, api: Api
) -> None:
    body = event_body("repeat", b'{"a": 1}')
    first = accepted(api.post_event(body, ("Idempotency-Key", "repeat-1")))
    with running.nothing_stored():
        for _ in range(3):
            again = api.post_event(body, ("idempotency-key", "repeat-1"))
            assert again.status == 200
            assert again.json() == {**first, "duplicate": True}


def test_the_envelopes_spelling_does_not_matter_but_the_payloads_does(
    running: RunningSystem, api: Api
) -> None:
    key = ("Idempotency-Key", "spelling")
    first = accepted(api.post_event(event_body("spelling", b'{"a":1,"b":2}'), key))
    with running.nothing_stored():
        same = api.post_event(b'{ "payload": {"a":1,"b":2}, "event_type": "spelling"}', key)
        assert same.status == 200
        assert same.json()["id"] == first["id"]
        for other in (
            b'{"a":1, "b":2}',
            b'{"b":2,"a":1}',
            b'{"a":1.0,"b":2}',
            b'{"a":1,"b":2,"b":2}',
            b"null",
        ):
            answer = api.post_event(event_body("spelling", other), key)
            assert_problem(answer, 409, "idempotency_conflict")
        answer = api.post_event(event_body("spelling.other", b'{"a":1,"b":2}'), key)
        assert_problem(answer, 409, "idempotency_conflict")
    assert api.get(f"/v1/events/{first['id']}").body.endswith(b'{"a":1,"b":2}}')


def test_keys_are_compared_exactly(api: Api) -> None:
    body = event_body("exact")
    ids = {
        str(accepted(api.post_event(body, ("Idempotency-Key", key)))["id"])
        for key in ("exact", "Exact", "exact.", "e xact", "x" * 255, "x" * 254, '"exact"')
    }
    assert len(ids) == 7


def test_tenants_do_not_share_keys(api: Api) -> None:
    key = ("Idempotency-Key", "shared")
    bodies = [
        b'{"event_type":"t","tenant_id":"%s","payload":"%s"}' % (tenant, tenant)
        for tenant in (b"first", b"second")
    ]
    first, second = (accepted(api.post_event(body, key)) for body in bodies)
    assert first["id"] != second["id"]
    for body, event in zip(bodies, (first, second), strict=True):
        assert api.post_event(body, key).json()["id"] == event["id"]


@pytest.mark.parametrize(
    "values",
    [
        [""],
        ["  "],
        ["a", "a"],
        ["a", "b"],
        ["", "a"],
        ["x" * 256],
        ["x" * 20_000],
        [b"caf\xc3\xa9"],
        [b"\xff"],
        [b"tab\there"],
    ],
    ids=["empty", "blank", "equal", "two", "empty-and-one", "256", "20000", "utf8", "ff", "tab"],
)
def test_bad_idempotency_key_is_refused(running: RunningSystem, api: Api, values: list[str | bytes]) -> None:
    with running.nothing_stored():
        answer = api.post_event(event_body("key"), *(("Idempotency-Key", value) for value in values))
        assert_problem(answer, 422, "invalid_idempotency_key", "Idempotency-Key")


def test_refused_event_leaves_its_key_free(api: Api) -> None:
    key = ("Idempotency-Key", "free-after-refusal")
    assert_problem(api.post_event(b'{"event_type":"free"}', key), 422, "invalid_event", "payload")
    accepted(api.post_event(event_body("free"), key))


@pytest.mark.parametrize("round_number", range(20))
def test_fifty_calls_at_once_with_one_key_make_one_event(
    running: RunningSystem, api: Api, round_number: int
) -> None:
    event_type = new_name("race")
    key = ("Idempotency-Key", event_type)
    answers = at_once(api, [event_body(event_type, b'{"round": %d}' % round_number)] * 50, key)
    assert sorted(answer.status for answer in answers) == [200] * 49 + [202]
    assert len({(answer.json()["id"], answer.json()["created_at"]) for answer in answers}) == 1
    assert len(running.rows("SELECT FROM events WHERE event_type = %s", event_type)) == 1


def test_different_contents_at_once_with_one_key_make_one_event(running: RunningSystem, api: Api) -> None:
    event_type = new_name("race")
    bodies = [event_body(event_type, json.dumps({"n": n % 5}).encode()) for n in range(50)]
    answers = at_once(api, bodies, ("Idempotency-Key", event_type))
    statuses = [answer.status for answer in answers]
    assert statuses.count(202) == 1
    assert statuses.count(200) == 9
    assert statuses.count(409) == 40
    assert len({answer.json()["id"] for answer in answers if answer.status < 300}) == 1
    assert len(running.rows("SELECT FROM events WHERE event_type = %s", event_type)) == 1


def test_events_that_come_together_do_not_share_a_refusal(running: RunningSystem, api: Api) -> None:
    """Calls that arrive at once share a transaction; the conflict of one must not touch the others."""
    event_type = new_name("mixed")
    accepted(api.post_event(event_body(event_type, b"0"), ("Idempotency-Key", event_type)))
    bodies = [event_body(event_type, b"%d" % n) for n in range(20)]
    conflicting = at_once(api, bodies[1:2] * 10, ("Idempotency-Key", event_type))
    plain = at_once(api, bodies)
    assert {answer.status for answer in conflicting} == {409}
    assert {answer.status for answer in plain} == {202}
    assert len(running.rows("SELECT FROM events WHERE event_type = %s", event_type)) == 21


def at_once(api: Api, bodies: list[bytes], *headers: tuple[str, str | bytes]) -> list[Answer]:
    """Every request but for its last byte, on a connection each; then all last bytes; then the answers."""
    connections: list[socket.socket] = []
    try:
        for body in bodies:
            connections.append(api.connect())
            length = ("content-length", str(len(body)))
            connections[-1].sendall(
                request_bytes("POST", "/v1/events", api.headers(*headers, length), body[:-1])
            )
        for connection, body in zip(connections, bodies, strict=True):
            connection.sendall(body[-1:])
        return [read_answer(connection) for connection in connections]
    finally:
        for connection in connections:
            connection.close()
