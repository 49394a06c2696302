"""/v1/bulk-operations: start, count, list, show, pause, resume, stop, and another rate."""

from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe

PATH = "/v1/bulk-operations"
FIELDS = {
    "id",
    "kind",
    "status",
    "tenant_id",
    "filter",
    "rate_per_second",
    "reason",
    "created_by",
    "created_by_key_id",
    "matched",
    "done",
    "skipped",
    "delivered",
    "failed",
    "under_way",
    "retrying",
    "stop_reason",
    "last_step_at",
    "created_at",
    "updated_at",
    "finished_at",
}


class Dead:
    """A subscription whose receiver refuses, and so many dead letters of it."""

    def __init__(self, running: RunningSystem, url: str, how_many: int) -> None:
        self.event_type = new_name("bulk")
        self.subscription_id: int = subscribe(running, running.api, self.event_type, url)["id"]
        for _ in range(how_many):
            post(running.api, self.event_type)
        self.ids = dead_letters(running, self.subscription_id, how_many)

    def requeue(self, **more: Any) -> dict[str, Any]:
        return {"kind": "requeue", "filter": {"event_type": self.event_type}, **more}


@pytest.fixture
def three(running: RunningSystem, refusing_url: str) -> Dead:
    return Dead(running, refusing_url, 3)


@pytest.fixture
def slow(api: Api, three: Dead) -> dict[str, Any]:
    """An operation that has started one of three, and starts the next in a hundred seconds."""
    operation = api.good("POST", PATH, three.requeue(rate_per_second=0.01))
    return wait_until(lambda: (now := shown(api, operation))["done"] == 1 and now, "the first is started")


def shown(api: Api, operation: dict[str, Any]) -> dict[str, Any]:
    return api.good("GET", f"{PATH}/{operation['id']}")


def ended(api: Api, operation: dict[str, Any]) -> dict[str, Any]:
    return wait_until(lambda: (now := shown(api, operation))["finished_at"] and now, "the operation ends")


def test_every_match_is_requeued_once(api: Api, running: RunningSystem, three: Dead) -> None:
    operation = api.good("POST", PATH, three.requeue(rate_per_second=100, reason="it is back"))
    assert operation.keys() == FIELDS | {"lanes", "created"}
    assert (operation["status"], operation["matched"], operation["done"]) == ("Running", 3, 0)
    assert (operation["created_by"], operation["reason"], operation["created"]) == (
        "local",
        "it is back",
        True,
    )
    done = ended(api, operation)
    assert (done["status"], done["done"], done["skipped"]) == ("Completed", 3, 0)
    assert len(dead_letters(running, three.subscription_id, 6)) == 6  # they died again, and stay so
    done = shown(api, operation)
    told = {"done": 3, "skipped": 0, "delivered": 0, "failed": 3, "under_way": 0, "retrying": 0}
    assert told.items() <= done.items()
    assert done["lanes"] == [
        {"subscription_id": three.subscription_id, "matched": 3, **told, "finished": True}
    ]
    again = api.good("GET", f"/v1/dead-letters?event_type={three.event_type}")["items"]
    assert [one["requeued_as"] is None for one in again] == [True] * 3 + [False] * 3


def test_a_dry_run_counts_and_changes_nothing(api: Api, running: RunningSystem, three: Dead) -> None:
    with running.nothing_stored():
        answer = api.post(PATH, three.requeue(rate_per_second=2, dry_run=True))
    assert answer.status == 200
    assert answer.json() == {
        "kind": "requeue",
        "rate_per_second": 2,
        "matched": 3,
        "subscriptions": 1,
        "seconds": 1.5,
        "dry_run": True,
    }


def test_the_same_call_again_finds_the_first_operation(api: Api, three: Dead, slow: dict[str, Any]) -> None:
    again = api.post(PATH, three.requeue(rate_per_second=50, reason="again"))
    assert (again.status, again.json()["id"], again.json()["created"]) == (200, slow["id"], False)
    assert again.json()["rate_per_second"] == 0.01
    api.good("POST", f"{PATH}/{slow['id']}/stop")


def test_pause_resume_rate_and_stop(api: Api, slow: dict[str, Any]) -> None:
    at = f"{PATH}/{slow['id']}"
    for _ in range(2):
        assert api.good("POST", f"{at}/pause")["status"] == "Paused"
    assert api.good("PATCH", at, {"rate_per_second": 100})["rate_per_second"] == 100
    assert shown(api, slow)["done"] == 1
    assert api.good("POST", f"{at}/resume")["status"] == "Running"
    assert ended(api, slow)["done"] == 3
    assert_problem(api.post(f"{at}/pause"), 409, "bulk_operation_ended")
    assert_problem(api.post(f"{at}/stop"), 409, "bulk_operation_ended")
    assert_problem(api.patch(at, {"rate_per_second": 1}), 409, "bulk_operation_ended")


def test_a_stopped_operation_starts_nothing_more(api: Api, slow: dict[str, Any]) -> None:
    at = f"{PATH}/{slow['id']}"
    assert api.good("POST", f"{at}/stop")["status"] == "Stopped"
    assert api.good("POST", f"{at}/stop")["done"] == 1
    assert_problem(api.post(f"{at}/resume"), 409, "bulk_operation_ended")


def test_the_list_is_newest_first_by_pages_and_status(api: Api) -> None:
    made = [
        api.good("POST", PATH, {"kind": "requeue", "filter": {"error_code": code}}) for code in ("a", "b")
    ]
    for one in made:
        ended(api, one)
    first = api.good("GET", f"{PATH}?limit=1")
    assert [one["id"] for one in first["items"]] == [made[1]["id"]]
    assert first["items"][0].keys() == FIELDS
    second = api.good("GET", f"{PATH}?limit=1&cursor={first['next']}")
    assert [one["id"] for one in second["items"]] == [made[0]["id"]]
    assert {one["status"] for one in api.good("GET", f"{PATH}?status=Completed")["items"]} == {"Completed"}
    assert api.good("GET", f"{PATH}?status=Paused")["items"] == []
    assert_problem(api.get(f"{PATH}?status=paused"), 422, "invalid_parameter", "status")


def test_a_backfill_gives_what_came_before_the_subscription(
    api: Api, running: RunningSystem, refusing_url: str
) -> None:
    event_type = new_name("before")
    events = [post(api, event_type) for _ in range(4)]
    wait_until(
        lambda: running.counts()["events"] and not running.rows("SELECT FROM routing_outbox"), "routed"
    )
    subscription = subscribe(running, api, event_type, refusing_url)
    assert api.good("GET", f"/v1/events/{events[0]}")["sagas"] == []
    wanted = {"subscription_id": subscription["id"], "since": "2026-01-01T00:00:00+01:00"}
    operation = api.good("POST", PATH, {"kind": "backfill", "filter": wanted, "rate_per_second": 200})
    assert operation["filter"] == {
        "subscription_id": subscription["id"],
        "since": "2025-12-31T23:00:00.000000Z",
        "event_types": [event_type],
    }
    assert (operation["matched"], operation["tenant_id"]) == (4, "default")
    assert ended(api, operation)["done"] == 4
    for event_id in events:
        assert len(api.good("GET", f"/v1/events/{event_id}")["sagas"]) == 1
    dead_letters(running, subscription["id"], 4)
    attempts = api.good("GET", f"/v1/attempts?subscription_id={subscription['id']}")["items"]
    assert [one["trigger"] for one in attempts] == ["backfill"] * 4
    assert api.good("POST", PATH, {"kind": "backfill", "filter": wanted, "dry_run": True})["matched"] == 0


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({}, "kind"),
        ({"kind": "replay"}, "kind"),
        ({"kind": "requeue", "rate_per_second": 0}, "rate_per_second"),
        ({"kind": "requeue", "rate_per_second": 1001}, "rate_per_second"),
        ({"kind": "requeue", "reason": "a\nb"}, "reason"),
        ({"kind": "requeue", "limit": 5}, "limit"),
        ({"kind": "requeue", "filter": {"surprise": 1}}, "filter.surprise"),
        ({"kind": "requeue", "filter": {"failed_after": "yesterday"}}, "filter.failed_after"),
        ({"kind": "requeue", "filter": {"since": "2026-01-01T00:00:00Z"}}, None),
        ({"kind": "backfill", "filter": {"subscription_id": 1}}, None),
    ],
)
def test_what_is_wrong_is_named(
    api: Api, running: RunningSystem, content: dict[str, Any], field: str | None
) -> None:
    with running.nothing_stored():
        assert_problem(api.post(PATH, content), 422, "invalid_field", field)


def test_a_backfill_is_refused_where_nothing_could_come_of_it(
    api: Api, running: RunningSystem, refusing_url: str
) -> None:
    wanted = {"event_type": new_name("unverified"), "callback_url": refusing_url}
    unverified = api.good("POST", "/v1/subscriptions", wanted)["id"]
    verified = subscribe(running, api, new_name("verified"), refusing_url)["id"]

    def refusal(subscription_id: int, since: str, **more: str) -> Any:
        chosen = {"subscription_id": subscription_id, "since": since, **more}
        return api.post(PATH, {"kind": "backfill", "filter": chosen})

    assert_problem(refusal(2**60, "2026-01-01T00:00:00Z"), 404, "subscription_not_found")
    assert_problem(refusal(unverified, "2026-01-01T00:00:00Z"), 409, "subscription_inactive")
    assert_problem(refusal(verified, "9998-01-01T00:00:00Z"), 422, "invalid_field", "filter.since")
    until = "2026-01-01T00:00:00Z"
    assert_problem(refusal(verified, until, until=until), 422, "invalid_field", "filter.until")
    assert refusal(verified, "0001-01-01T00:00:00+14:00").status == 201


def test_an_unknown_operation_is_not_there(api: Api) -> None:
    assert_problem(api.get(f"{PATH}/{2**60}"), 404, "bulk_operation_not_found")
    assert_problem(api.post(f"{PATH}/x/pause"), 404, "bulk_operation_not_found")
