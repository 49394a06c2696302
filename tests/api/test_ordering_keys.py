"""The ordering key of an event: stored as it came, part of the content of an idempotency key, in every form."""

import json
from typing import Any

import pytest

from tests.api.http_client import Answer, Api, assert_problem
from tests.api.running_system import RunningSystem

CLOUD_EVENT = {"specversion": "1.0", "source": "/shop", "type": "keyed", "data": 1}


def event(**more: Any) -> dict[str, Any]:
    return {"event_type": "keyed", "payload": 1, **more}


def send(api: Api, idempotency_key: str | None = None, **more: Any) -> Answer:
    headers = [] if idempotency_key is None else [("idempotency-key", idempotency_key)]
    return api.post_event(json.dumps(event(**more)).encode(), *headers)


def key_of(api: Api, event_id: str) -> str | None:
    return api.good("GET", f"/v1/events/{event_id}")["ordering_key"]


@pytest.mark.parametrize("key", ["a", " ", "order 1001", "訂單-1 😀", "x" * 255, "😀" * 255, "\x80"])
def test_a_key_is_stored_as_it_came(api: Api, key: str) -> None:
    answer = send(api, ordering_key=key)
    assert answer.status == 202
    assert key_of(api, answer.json()["id"]) == key


@pytest.mark.parametrize("more", [{}, {"ordering_key": None}], ids=str)
def test_an_event_may_have_no_key(api: Api, more: dict[str, Any]) -> None:
    assert key_of(api, send(api, **more).json()["id"]) is None


@pytest.mark.parametrize("key", ["", "x" * 256, "a\u0000", "a\nb", "\x7f"], ids=ascii)
def test_a_bad_key_is_refused_by_its_rule(running: RunningSystem, api: Api, key: str) -> None:
    with running.nothing_stored():
        problem = assert_problem(send(api, ordering_key=key), 422, "invalid_ordering_key", "ordering_key")
        (item,) = api.good("POST", "/v1/events/batch", {"items": [event(ordering_key=key)]})["items"]
    assert "1 to 255 characters" in problem["detail"]
    assert (item["error"]["code"], item["error"]["field"]) == ("invalid_ordering_key", "ordering_key")


@pytest.mark.parametrize("key", [1, True, ["a"]], ids=str)
def test_a_key_is_text(running: RunningSystem, api: Api, key: object) -> None:
    with running.nothing_stored():
        assert_problem(send(api, ordering_key=key), 422, "invalid_event", "ordering_key")


@pytest.mark.parametrize(
    ("first", "second"), [("a", "b"), ("a", None), (None, "a")], ids=["other", "gone", "new"]
)
def test_the_ordering_key_is_part_of_the_content_of_an_idempotency_key(
    api: Api, first: str | None, second: str | None
) -> None:
    name = f"{first}-{second}"
    accepted = send(api, name, ordering_key=first)
    assert accepted.status == 202
    assert_problem(send(api, name, ordering_key=second), 409, "idempotency_conflict")
    repeated = send(api, name, ordering_key=first)
    assert (repeated.status, repeated.json()["id"]) == (200, accepted.json()["id"])


def test_each_item_of_a_batch_has_its_own_key(api: Api) -> None:
    items = [event(ordering_key="a"), event(), event(ordering_key="b", idempotency_key="batch-b")]
    ids = [one["id"] for one in api.good("POST", "/v1/events/batch", {"items": items})["items"]]
    assert [key_of(api, one) for one in ids] == ["a", None, "b"]
    again = [event(ordering_key="c", idempotency_key="batch-b")]
    (item,) = api.good("POST", "/v1/events/batch", {"items": again})["items"]
    assert item["error"]["code"] == "idempotency_conflict"


def test_a_cloud_event_has_its_key_in_partitionkey(api: Api) -> None:
    structured = {**CLOUD_EVENT, "id": "s", "partitionkey": "顧客 7"}
    kind = "application/cloudevents+json"
    answer = api.post_event(json.dumps(structured).encode(), content_type=kind)
    assert key_of(api, answer.json()["id"]) == "顧客 7"
    names = {
        "specversion": "1.0",
        "source": "/shop",
        "type": "keyed",
        "id": "b",
        "partitionkey": "customer 7",
    }
    answer = api.post_event(b"1", *((f"ce-{name}", value) for name, value in names.items()))
    assert key_of(api, answer.json()["id"]) == "customer 7"
    other = {**structured, "partitionkey": "another"}
    answer = api.post_event(json.dumps(other).encode(), content_type=kind)
    assert_problem(answer, 409, "idempotency_conflict")


def test_an_event_of_a_producers_own_transaction_may_have_a_key(running: RunningSystem, api: Api) -> None:
    with running.database.transaction():
        running.run("SET LOCAL ROLE event_producer")
        running.run(
            "INSERT INTO events (event_type, payload, ordering_key) VALUES ('keyed.sql', '1', 'order 7')"
        )
    (row,) = running.rows("SELECT webhook_id FROM events WHERE event_type = 'keyed.sql'")
    assert key_of(api, f"evt_{row['webhook_id'].hex}") == "order 7"
