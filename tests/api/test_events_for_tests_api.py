"""POST /v1/subscriptions/{id}/test."""

from typing import Any

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, subscribe


def test_it_goes_to_one_subscription_and_is_marked(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    event_type = new_name("test")
    tested, other = [subscribe(running, api, event_type, refusing_url) for _ in range(2)]
    answer = api.post(f"/v1/subscriptions/{tested['id']}/test")
    assert answer.status == 202
    accepted = answer.json()
    assert (accepted["event_type"], accepted["duplicate"]) == (event_type, False)

    def dead() -> dict[str, Any] | None:
        event = api.good("GET", f"/v1/events/{accepted['id']}")
        return event if [saga["status"] for saga in event["sagas"]] == ["DeadLettered"] else None

    event = wait_until(dead, "its delivery has ended")
    assert (event["test_subscription_id"], event["payload"]) == (tested["id"], {"test": True})
    (saga,) = event["sagas"]
    assert saga["subscription_id"] == tested["id"]
    (attempt,) = saga["attempts"]
    shown = api.good("GET", f"/v1/attempts/{attempt['id']}")
    assert shown["request_headers"]["hooksaga-test"] == "true"
    reasons = {one["subscription_id"]: one["reason"] for one in event["routing"]["decisions"]}
    assert reasons == {tested["id"]: None, other["id"]: "test_of_another"}


def test_given_type_and_payload(running: RunningSystem, api: Api, refusing_url: str) -> None:
    subscription = subscribe(running, api, new_name("test"), refusing_url)
    api.good("PATCH", f"/v1/subscriptions/{subscription['id']}", {"event_types": ["shop.*", "x"]})
    path = f"/v1/subscriptions/{subscription['id']}/test"
    made = api.post(path, {"event_type": "shop.paid", "payload": {"total": 1.5}}).json()
    event = api.good("GET", f"/v1/events/{made['id']}")
    assert (event["event_type"], event["payload"]) == ("shop.paid", {"total": 1.5})
    assert api.post(path, {}).json()["event_type"] == "shop.test"
    for wrong in ("y", "shop"):
        assert_problem(api.post(path, {"event_type": wrong}), 409, "event_type_not_received")
    assert_problem(api.post(path, {"event_type": "hooksaga.x"}), 422, "reserved_event_type", "event_type")
    assert_problem(api.post(path, {"event": 1}), 422, "invalid_event", "event")
    assert len(dead_letters(running, subscription["id"], 2)) == 2


def test_one_that_takes_nothing_and_one_of_another_tenant(running: RunningSystem, api: Api) -> None:
    wanted = {"event_type": "a", "callback_url": "https://example.com/"}
    created = api.good("POST", "/v1/subscriptions", wanted)
    others = api.with_key(running.new_key(tenant_id=new_name("other")))
    with running.nothing_stored():
        assert_problem(api.post(f"/v1/subscriptions/{created['id']}/test"), 409, "subscription_inactive")
        for path in (f"/v1/subscriptions/{created['id']}/test", "/v1/subscriptions/x/test"):
            assert_problem(others.post(path), 404, "subscription_not_found")
