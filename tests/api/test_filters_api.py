"""Filters in the API: kept as they were written, refused by their place, tried on recent events."""

import json
from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.filter_cases import BAD

URL = "https://127.0.0.1:9/hook"
FILTER: dict[str, Any] = {"total": [{"numeric": [">", 100]}], "country": ["DE", {"prefix": "A"}]}


def made(api: Api, **fields: Any) -> dict[str, Any]:
    wanted = {"event_type": new_name("filtered"), "callback_url": URL, **fields}
    return api.good("POST", "/v1/subscriptions", wanted)


def posted(api: Api, event_type: str, **attributes: Any) -> str:
    body = {"event_type": event_type, "payload": 1, "attributes": attributes}
    return api.post_event(json.dumps(body).encode()).json()["id"]


def test_a_filter_is_shown_as_it_was_written_until_it_is_removed(api: Api) -> None:
    subscription = made(api, filter=FILTER)
    path = f"/v1/subscriptions/{subscription['id']}"
    assert json.dumps(subscription["filter"]) == json.dumps(FILTER)
    assert api.good("PATCH", path, {"description": "other"})["filter"] == FILTER
    assert api.good("GET", path)["filter"] == FILTER
    assert api.good("PATCH", path, {"filter": {"a": [1]}})["filter"] == {"a": [1]}
    assert api.good("PATCH", path, {"filter": None})["filter"] is None
    assert made(api)["filter"] is None


@pytest.mark.parametrize(("given", "place"), [one for one in BAD if "Infinity" not in json.dumps(one[0])])
def test_an_error_names_the_place(
    running: RunningSystem, api: Api, given: dict[str, Any], place: str
) -> None:
    text = json.dumps(given)
    if "\\ud800" in text:  # no JSON at all
        return
    answer = api.post("/v1/subscriptions", {"event_type": "a", "callback_url": URL, "filter": given})
    problem = assert_problem(answer, 422, "invalid_field", f"filter{place}")
    assert problem["detail"].startswith(f"filter{place}: ")


@pytest.mark.parametrize("given", [[], "x", 5, True])
def test_a_filter_is_an_object(api: Api, given: object) -> None:
    answer = api.post("/v1/subscriptions", {"event_type": "a", "callback_url": URL, "filter": given})
    assert_problem(answer, 422, "invalid_field", "filter")


def test_recent_events_are_compared(api: Api) -> None:
    subscription = made(api, filter=FILTER)
    path, event_type = f"/v1/subscriptions/{subscription['id']}/test-filter", subscription["event_type"]
    right = posted(api, event_type, total=100.5, country="AT")
    wrong = posted(api, event_type, total=99, country="AT")
    without = posted(api, event_type)
    found = api.good("POST", path)
    assert (found["filter"], found["compared"], found["matched"]) == (FILTER, 3, 1)
    assert [(one["id"], one["matches"]) for one in found["items"]] == [
        (without, False),
        (wrong, False),
        (right, True),
    ]
    assert [one["failed_condition"] for one in found["items"]] == [
        {"name": "total", "wanted": FILTER["total"], "value": None},
        {"name": "total", "wanted": FILTER["total"], "value": 99},
        None,
    ]
    tried = api.good("POST", path, {"filter": {"total": [{"exists": False}]}, "last": 2})
    assert [one["matches"] for one in tried["items"]] == [True, False]
    assert_problem(api.post(path, {"filter": {"a": 1}}), 422, "invalid_field", "filter.a")
    assert_problem(api.post(path, {"last": 1001}), 422, "invalid_field", "last")


def test_the_routing_names_the_condition_that_failed(running: RunningSystem, api: Api) -> None:
    subscription = made(api, filter=FILTER)
    running.verify_by_hand(subscription["id"])
    event = posted(api, subscription["event_type"], total=50, country="DE")

    def decided() -> dict[str, Any] | None:
        routing = api.good("GET", f"/v1/events/{event}")["routing"]
        return next(
            (one for one in routing["decisions"] if one["subscription_id"] == subscription["id"]), None
        )

    decision = wait_until(decided, "the decision")
    assert (decision["matched"], decision["reason"]) == (False, "filtered")
    assert decision["failed_condition"] == {"name": "total", "wanted": FILTER["total"], "value": 50}
    assert (decision["then"]["filter"], decision["now"]) == (FILTER, None)
