"""Flow control in the API: its fields, pause and resume, the shown state, and what a delivery waits for."""

import json
from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import GOOD, create, dead_letters, post, subscribe

DEFAULTS = {
    "max_in_flight": None,
    "rate_limit": None,
    "ordered": False,
    "max_wait_seconds": None,
    "circuit_breaker": True,
    "paused_at": None,
}
LEAST = {
    "max_in_flight": 1,
    "rate_limit": {"count": 1, "per_seconds": 1.0},
    "ordered": True,
    "max_wait_seconds": 60.0,
    "circuit_breaker": False,
}
MOST = {
    "max_in_flight": 1000,
    "rate_limit": {"count": 100_000, "per_seconds": 86_400.0},
    "max_wait_seconds": 2_592_000.0,
}
OPEN = {
    "state": "open",
    "since": None,
    "until": None,
    "limit": 10,
    "in_flight": 0,
    "waiting": 0,
    "oldest_waiting_at": None,
}


def flow_of(api: Api, subscription: dict[str, Any]) -> dict[str, Any]:
    return api.good("GET", f"/v1/subscriptions/{subscription['id']}")["flow"]


def test_the_fields_have_defaults_and_are_reset_by_null(api: Api) -> None:
    created = create(api)
    assert {name: created[name] for name in DEFAULTS} == DEFAULTS
    target = f"/v1/subscriptions/{created['id']}"
    for given in (LEAST, MOST):
        changed = api.good("PATCH", target, given)
        assert {name: changed[name] for name in given} == given
    changed = api.good("PATCH", target, {"rate_limit": None, "description": "x"})
    assert (changed["rate_limit"], changed["max_in_flight"]) == (None, 1000)
    changed = api.good("PATCH", target, {"max_in_flight": None, "max_wait_seconds": None, "ordered": False})
    assert (changed["max_in_flight"], changed["max_wait_seconds"], changed["ordered"]) == (None, None, False)


def test_the_fields_are_taken_at_creation_and_listed(api: Api) -> None:
    created = create(api, **LEAST)
    assert {name: created[name] for name in LEAST} == LEAST
    (listed,) = [one for one in api.good("GET", "/v1/subscriptions")["items"] if one["id"] == created["id"]]
    assert {name: listed[name] for name in LEAST} == LEAST
    assert "flow" not in listed


def test_order_goes_with_a_limit_over_all_keys(api: Api) -> None:
    created = create(api, ordered=True, max_in_flight=50)
    assert (created["ordered"], created["max_in_flight"]) == (True, 50)


BAD_FIELDS: list[tuple[str, Any, str]] = [
    ("max_in_flight", 0, "max_in_flight"),
    ("max_in_flight", 1001, "max_in_flight"),
    ("max_in_flight", 1.5, "max_in_flight"),
    ("max_in_flight", "5", "max_in_flight"),
    ("max_in_flight", True, "max_in_flight"),
    ("rate_limit", {}, "rate_limit.count"),
    ("rate_limit", {"count": 5}, "rate_limit.per_seconds"),
    ("rate_limit", {"per_seconds": 5}, "rate_limit.count"),
    ("rate_limit", {"count": 0, "per_seconds": 1}, "rate_limit.count"),
    ("rate_limit", {"count": 100_001, "per_seconds": 1}, "rate_limit.count"),
    ("rate_limit", {"count": 1.5, "per_seconds": 1}, "rate_limit.count"),
    ("rate_limit", {"count": None, "per_seconds": 1}, "rate_limit.count"),
    ("rate_limit", {"count": 1, "per_seconds": 0.5}, "rate_limit.per_seconds"),
    ("rate_limit", {"count": 1, "per_seconds": 86_401}, "rate_limit.per_seconds"),
    ("rate_limit", {"count": 1, "per_seconds": 1, "burst": 2}, "rate_limit.burst"),
    ("rate_limit", 50, "rate_limit"),
    ("rate_limit", "50/1", "rate_limit"),
    ("ordered", None, "ordered"),
    ("ordered", 1, "ordered"),
    ("ordered", "key", "ordered"),
    ("max_wait_seconds", 59, "max_wait_seconds"),
    ("max_wait_seconds", 2_592_001, "max_wait_seconds"),
    ("max_wait_seconds", "60", "max_wait_seconds"),
    ("circuit_breaker", None, "circuit_breaker"),
    ("circuit_breaker", 0, "circuit_breaker"),
    ("paused_at", None, "paused_at"),
    ("flow", {}, "flow"),
]


@pytest.mark.parametrize(("name", "value", "field"), BAD_FIELDS, ids=range(len(BAD_FIELDS)))
def test_a_bad_field_is_named_with_its_rule(
    running: RunningSystem, api: Api, name: str, value: Any, field: str
) -> None:
    created = create(api)
    with running.nothing_stored():
        refused = [
            api.post("/v1/subscriptions", {**GOOD, name: value}),
            api.patch(f"/v1/subscriptions/{created['id']}", {"description": "not this", name: value}),
        ]
    for answer in refused:
        problem = assert_problem(answer, 422, "invalid_field", field)
        assert problem["detail"].startswith(f"{field}: ")
    assert api.good("GET", f"/v1/subscriptions/{created['id']}")["description"] == ""


def test_every_answer_about_one_subscription_has_its_flow(api: Api) -> None:
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    answers = [
        created,
        api.good("GET", target),
        api.good("PATCH", target, {"description": "x"}),
        api.good("POST", f"{target}/rotate-secret"),
        api.good("POST", f"{target}/resume"),
    ]
    assert [answer["flow"] for answer in answers] == [OPEN] * 5
    assert api.good("POST", f"{target}/pause")["flow"]["state"] == "paused"


def test_pause_keeps_its_first_time_and_resume_ends_it(api: Api) -> None:
    created = create(api)
    target = f"/v1/subscriptions/{created['id']}"
    paused = api.good("POST", f"{target}/pause")
    assert paused["paused_at"] == paused["flow"]["since"] >= created["created_at"]
    assert paused["flow"] == {**OPEN, "state": "paused", "since": paused["paused_at"], "limit": 0}
    assert api.good("POST", f"{target}/pause") == paused
    resumed = api.good("POST", f"{target}/resume")
    assert (resumed["paused_at"], resumed["flow"]) == (None, OPEN)
    for body in ({}, {"backlog": "deliver"}, {"backlog": "discard"}):
        assert api.good("POST", f"{target}/resume", body) == resumed


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_only_a_subscription_of_the_caller_is_paused_or_resumed(
    running: RunningSystem, api: Api, action: str
) -> None:
    created = create(api, tenant_id="acme")
    target = f"/v1/subscriptions/{created['id']}"
    stranger = api.with_key(running.new_key("subscriptions:write", tenant_id="zeta"))
    assert_problem(stranger.post(f"{target}/{action}"), 404, "subscription_not_found")
    assert_problem(api.post(f"/v1/subscriptions/999999999/{action}"), 404, "subscription_not_found")
    assert_problem(api.post(f"/v1/subscriptions/x/{action}"), 404, "subscription_not_found")
    assert api.good("GET", target)["paused_at"] is None
    api.call("DELETE", target)
    assert_problem(api.post(f"{target}/{action}"), 404, "subscription_not_found")


BAD_RESUMPTIONS = [
    ({"backlog": "drop"}, "backlog"),
    ({"backlog": None}, "backlog"),
    ({"backlog": ["discard"]}, "backlog"),
    ({"discard": True}, "discard"),
]


@pytest.mark.parametrize(("body", "field"), BAD_RESUMPTIONS, ids=str)
def test_an_unknown_backlog_is_refused_and_leaves_it_paused(api: Api, body: Any, field: str) -> None:
    target = f"/v1/subscriptions/{create(api)['id']}"
    paused = api.good("POST", f"{target}/pause")
    assert_problem(api.post(f"{target}/resume", body), 422, "invalid_field", field)
    assert api.good("GET", target) == paused


def the_saga(api: Api, event_id: str) -> dict[str, Any]:
    """The one delivery of an event, once it is routed."""
    return wait_until(lambda: api.good("GET", f"/v1/events/{event_id}")["sagas"], "a saga")[0]


def test_a_paused_subscription_keeps_its_events_and_resume_delivers_them(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    one = subscribe(running, api, new_name("paused"), refusing_url)
    target = f"/v1/subscriptions/{one['id']}"
    api.good("POST", f"{target}/pause")
    sagas = [the_saga(api, post(api, one["event_type"])) for _ in range(3)]
    assert [(saga["status"], saga["waits_for"]) for saga in sagas] == [("Pending", "paused")] * 3
    flow = flow_of(api, one)
    assert (flow["state"], flow["waiting"], flow["in_flight"]) == ("paused", 3, 0)
    assert flow["oldest_waiting_at"] == min(saga["next_attempt_at"] for saga in sagas)
    api.good("POST", f"{target}/resume")
    dead_letters(running, one["id"], 3)  # it allows one attempt, and nobody listens
    query = "SELECT DISTINCT final_error_code AS code FROM dead_letters WHERE subscription_id = %s"
    assert [row["code"] for row in running.rows(query, one["id"])] == ["connection_refused"]
    assert flow_of(api, one) == OPEN | {"limit": flow_of(api, one)["limit"]}


def test_a_discarded_backlog_ends_as_dead_letters_and_new_events_are_delivered(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    one = subscribe(running, api, new_name("discarded"), refusing_url)
    target = f"/v1/subscriptions/{one['id']}"
    api.good("POST", f"{target}/pause")
    for _ in range(3):
        the_saga(api, post(api, one["event_type"]))
    api.good("POST", f"{target}/resume", {"backlog": "discard"})
    dead_letters(running, one["id"], 3)
    post(api, one["event_type"])
    dead_letters(running, one["id"], 4)
    query = "SELECT final_error_code AS code FROM dead_letters WHERE subscription_id = %s ORDER BY id"
    assert [row["code"] for row in running.rows(query, one["id"])] == [
        *["discarded"] * 3,
        "connection_refused",
    ]
    for more, count in (({}, 1), ({"error_code": "discarded"}, 3)):
        wanted = {"subscription_id": one["id"], "dry_run": True, **more}
        assert api.good("POST", "/v1/dead-letters/requeue", wanted)["matched"] == count


def routed(api: Api, event_id: str) -> dict[str, Any]:
    """The delivery as `explain` shows it."""
    return api.good("GET", f"/v1/events/{event_id}/routing")["routing"]["decisions"][0]["saga"]


FAR = "2100-01-01T00:00:00.000000Z"
CLOSE = """UPDATE subscription_flow SET breaker_opened_at = %s, probe_at = %s, retry_after_until = %s
            WHERE subscription_id = %s"""


def test_a_closed_subscription_says_why_its_deliveries_wait(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    one = subscribe(running, api, new_name("closed"), refusing_url)
    closed: dict[str, tuple[str | None, str | None, str | None]] = {
        "breaker_open": ("2026-03-14T09:00:00.000000Z", FAR, None),
        "retry_after": (None, None, FAR),
    }
    event_id = ""
    for state, times in closed.items():
        running.run(CLOSE, *times, one["id"])
        event_id = event_id or post(api, one["event_type"])
        saga = the_saga(api, event_id)
        assert (saga["waits_for"], saga["waits_for_saga_id"]) == (state, None)
        assert routed(api, event_id)["waits_for"] == state
        flow = flow_of(api, one)
        assert (flow["state"], flow["since"], flow["until"], flow["limit"]) == (state, times[0], FAR, 0)


def test_without_a_token_a_delivery_waits_for_the_rate_limit(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    slow = {"count": 1, "per_seconds": 86_400}
    one = subscribe(running, api, new_name("limited"), refusing_url, rate_limit=slow)
    post(api, one["event_type"])
    dead_letters(running, one["id"], 1)
    second = post(api, one["event_type"])
    assert the_saga(api, second)["waits_for"] == "limited"
    flow = flow_of(api, one)
    assert (flow["state"], flow["since"], flow["waiting"]) == ("limited", None, 1)
    assert flow["until"] > flow["oldest_waiting_at"]


def test_an_ordered_delivery_waits_for_the_one_before_it(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    patient = {"max_retry_limit": 2, "base_delay_seconds": 3600, "ordered": True}
    one = subscribe(running, api, new_name("ordered"), refusing_url, **patient)

    def posted(key: str | None) -> str:
        body = json.dumps({"event_type": one["event_type"], "payload": 1, "ordering_key": key})
        return api.post_event(body.encode()).json()["id"]

    first = posted("a")
    wait_until(lambda: the_saga(api, first)["status"] == "PendingRetry", "the first attempt failed")
    second, other = posted("a"), posted("b")
    before = the_saga(api, first)
    assert (before["waits_for"], before["waits_for_saga_id"]) == ("retry", None)
    saga = the_saga(api, second)
    assert (saga["waits_for"], saga["waits_for_saga_id"]) == ("order", before["id"])
    assert routed(api, second)["waits_for_saga_id"] == before["id"]
    wait_until(lambda: the_saga(api, other)["status"] == "PendingRetry", "another key does not wait")
    assert the_saga(api, second)["status"] == "Pending"


def test_an_ended_delivery_waits_for_nothing(running: RunningSystem, api: Api, refusing_url: str) -> None:
    one = subscribe(running, api, new_name("ended"), refusing_url)
    event_id = post(api, one["event_type"])
    dead_letters(running, one["id"], 1)
    for saga in (the_saga(api, event_id), routed(api, event_id)):
        assert (saga["status"], saga["waits_for"], saga["waits_for_saga_id"]) == ("DeadLettered", None, None)
