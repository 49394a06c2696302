"""Reserved event types, the health of an endpoint, and what a subscription missed that was disabled."""

import json
from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import subscribe

RESERVED = "hooksaga.subscription.disabled"
UNREACHABLE = "https://127.0.0.1:1/hook"


def health(api: Api, subscription_id: int) -> dict[str, Any]:
    return api.good("GET", f"/v1/subscriptions/{subscription_id}/health")


def disable(running: RunningSystem, subscription_id: int) -> None:
    """Disable a subscription as the monitor does, an hour ago, after two hours of failures."""
    running.run("UPDATE subscriptions SET active = false WHERE id = %s", subscription_id)
    running.run(
        "UPDATE subscription_health SET disabled_at = now() - interval '1 hour', disabled_reason = 'failing',"
        " disabled_failing_since = now() - interval '2 hours', consecutive_failures = 12,"
        " first_failure_at = now() - interval '2 hours', last_error_code = 'http_503' WHERE subscription_id = %s",
        subscription_id,
    )


@pytest.mark.parametrize("target", ["/v1/events", "/v1/events/batch"])
def test_nobody_posts_an_operational_event(api: Api, running: RunningSystem, target: str) -> None:
    event = {"event_type": RESERVED, "payload": {}}
    with running.nothing_stored():
        if target == "/v1/events":
            assert_problem(api.post(target, event), 422, "reserved_event_type", "event_type")
        else:
            (item,) = api.good("POST", target, {"items": [event]})["items"]
            assert item["error"]["code"] == "reserved_event_type"


def test_nobody_posts_one_as_a_cloud_event(api: Api, running: RunningSystem) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": RESERVED}
    with running.nothing_stored():
        answer = api.post_event(json.dumps(event).encode(), content_type="application/cloudevents+json")
        assert_problem(answer, 422, "reserved_event_type", "event_type")


def test_anybody_may_subscribe_to_them(api: Api) -> None:
    wanted = {"event_type": RESERVED, "callback_url": "https://example.com/hook"}
    assert api.good("POST", "/v1/subscriptions", wanted)["event_type"] == RESERVED


def test_a_new_subscription_is_well(api: Api) -> None:
    wanted = {"event_type": new_name("health"), "callback_url": "https://example.com/hook"}
    created = api.good("POST", "/v1/subscriptions", wanted)
    shown = health(api, created["id"])
    assert shown.pop("counted_until").endswith("Z")
    assert shown == {
        "subscription_id": created["id"],
        "consecutive_failures": 0,
        "first_failure_at": None,
        "last_failure_at": None,
        "last_success_at": None,
        "last_error_code": None,
        "disabled_at": None,
        "disabled_reason": None,
        "will_be_disabled_at": None,
    }


def test_when_a_failing_endpoint_will_be_disabled_is_said(api: Api, running: RunningSystem) -> None:
    one = subscribe(running, api, new_name("health"), UNREACHABLE)
    running.run(
        "UPDATE subscription_health SET consecutive_failures = 3, first_failure_at = '2030-01-01T00:00:00Z',"
        " last_failure_at = '2030-01-01T01:00:00Z', last_error_code = 'tls_error' WHERE subscription_id = %s",
        one["id"],
    )
    shown = health(api, one["id"])
    assert (shown["consecutive_failures"], shown["last_error_code"]) == (3, "tls_error")
    assert shown["will_be_disabled_at"] == "2030-01-06T00:00:00.000000Z"
    api.good("PATCH", f"/v1/subscriptions/{one['id']}", {"active": False})
    assert health(api, one["id"])["will_be_disabled_at"] is None


def test_switching_it_on_again_says_what_it_missed(api: Api, running: RunningSystem) -> None:
    kind = new_name("health")
    one = subscribe(running, api, kind, UNREACHABLE)
    target = f"/v1/subscriptions/{one['id']}"
    disable(running, one["id"])
    assert health(api, one["id"])["disabled_reason"] == "failing"
    for _ in range(3):
        assert api.post("/v1/events", {"event_type": kind, "payload": {}}).status == 202
    described = api.good("PATCH", target, {"description": "still off"})
    assert "missed" not in described
    changed = api.good("PATCH", target, {"active": True})
    missed = changed["missed"]
    assert (missed["dead_letters"], missed["events"], missed["at_least"]) == (0, 3, False)
    assert missed["failing_since"] < missed["since"] < changed["eligible_since"]
    shown = health(api, one["id"])
    assert (shown["consecutive_failures"], shown["disabled_at"]) == (0, None)
    assert "missed" not in api.good("PATCH", target, {"active": True})
    assert "missed" not in api.good("GET", target)


def test_another_tenant_learns_nothing(api: Api, running: RunningSystem) -> None:
    one = subscribe(running, api, new_name("health"), UNREACHABLE)
    disable(running, one["id"])
    stranger = Api(api.port, running.new_key("subscriptions:write", tenant_id="stranger"))
    target = f"/v1/subscriptions/{one['id']}"
    assert_problem(stranger.get(f"{target}/health"), 404, "subscription_not_found")
    assert_problem(stranger.patch(target, {"active": True}), 404, "subscription_not_found")
