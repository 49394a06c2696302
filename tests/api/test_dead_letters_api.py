"""/v1/dead-letters: list, show, requeue one, requeue what a filter matches."""

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, post, subscribe

FIELDS = {
    "id",
    "saga_id",
    "event_id",
    "subscription_id",
    "event_type",
    "final_error_code",
    "failed_at",
    "requeued_as",
}


class Dead:
    """A subscription whose receiver refuses, and so many dead letters of it."""

    def __init__(self, running: RunningSystem, url: str, how_many: int, payload: bytes = b"{}") -> None:
        self.running = running
        self.event_type = new_name("dead")
        self.subscription_id: int = subscribe(running, running.api, self.event_type, url)["id"]
        self.events = [post(running.api, self.event_type, payload) for _ in range(how_many)]
        self.ids = dead_letters(running, self.subscription_id, how_many)

    @property
    def filter(self) -> str:
        return f"subscription_id={self.subscription_id}"


@pytest.fixture(scope="module")
def nine(running: RunningSystem, refusing_url: str) -> Dead:
    """Only read, never requeued."""
    return Dead(running, refusing_url, 9, b'{"b": 1.10, "b": "\\u0000"}')


def test_list_and_single_dead_letter_tell_the_same(api: Api, nine: Dead) -> None:
    items = api.good("GET", f"/v1/dead-letters?{nine.filter}")["items"]
    assert [item["id"] for item in items] == nine.ids
    assert {item["event_id"] for item in items} == set(nine.events)
    for item in items:
        assert set(item) >= FIELDS
        assert item["final_error_code"] == "connection_refused"
        assert item["requeued_as"] is None
        assert item["event_type"] == nine.event_type
        assert item["failed_at"].endswith("Z")
        shown = api.get(f"/v1/dead-letters/{item['id']}")
        assert shown.body.endswith(b',"payload_snapshot":{"b": 1.10, "b": "\\u0000"}}')
        whole = shown.json()
        del whole["payload_snapshot"]
        assert whole == item
        saga = api.good("GET", f"/v1/events/{item['event_id']}")["sagas"][0]
        assert (saga["id"], saga["status"]) == (item["saga_id"], "DeadLettered")


def test_each_filter_finds_its_own_only(api: Api, nine: Dead) -> None:
    def found(query: str) -> list[int]:
        return [item["id"] for item in api.good("GET", f"/v1/dead-letters?{nine.filter}&{query}")["items"]]

    middle = api.good("GET", f"/v1/dead-letters/{nine.ids[4]}")["failed_at"]
    assert found(f"event_type={nine.event_type}") == nine.ids
    assert found("event_type=other") == []
    assert found("error_code=connection_refused") == nine.ids
    assert found("error_code=http_500") == []
    after, before = found(f"failed_after={middle}"), found(f"failed_before={middle}")
    assert set(after) | set(before) == set(nine.ids)
    assert nine.ids[4] in after
    assert nine.ids[4] not in before
    assert found(f"failed_after={quote('2020-01-01T00:00:00+01:00')}") == nine.ids
    assert found("failed_before=2020-01-01T00:00:00Z") == []


BAD_FILTERS = [
    ("subscription_id=0", "subscription_id"),
    ("subscription_id=x", "subscription_id"),
    ("subscription_id=", "subscription_id"),
    ("subscription_id=" + "9" * 19, "subscription_id"),
    ("subscription_id=" + "9" * 5000, "subscription_id"),
    ("event_type=", "event_type"),
    ("event_type=%00", "event_type"),
    ("error_code=", "error_code"),
    ("error_code=%00", "error_code"),
    ("error_code=" + "x" * 101, "error_code"),
    ("failed_after=", "failed_after"),
    ("failed_after=yesterday", "failed_after"),
    ("failed_after=2026-01-01", "failed_after"),
    ("failed_after=2026-01-01T00:00:00", "failed_after"),
    ("failed_after=2026-13-01T00:00:00Z", "failed_after"),
    ("failed_before=%00", "failed_before"),
    ("failed_before=NaN", "failed_before"),
    ("failed_before=1e400", "failed_before"),
    ("failed_before=" + "9" * 400, "failed_before"),
    ("failed_before=99999-01-01T00:00:00Z", "failed_before"),
]


@pytest.mark.parametrize(("query", "field"), BAD_FILTERS, ids=[one[0][:40] for one in BAD_FILTERS])
def test_bad_filter_is_refused(api: Api, query: str, field: str) -> None:
    assert_problem(api.get(f"/v1/dead-letters?{query}"), 422, "invalid_parameter", field)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "2016-12-31T23:59:59.999999999Z"]
)
@pytest.mark.parametrize("name", ["failed_after", "failed_before"])
def test_moments_at_the_ends_of_time_are_only_far_away(api: Api, name: str, moment: str) -> None:
    assert api.get(f"/v1/dead-letters?{name}={moment}").status == 200


BAD_REQUEUES: list[tuple[dict[str, Any], str]] = [
    ({"subscription_id": 0}, "subscription_id"),
    ({"subscription_id": 2**63}, "subscription_id"),
    ({"subscription_id": "1"}, "subscription_id"),
    ({"event_type": ""}, "event_type"),
    ({"event_type": "a\u0000"}, "event_type"),
    ({"error_code": ""}, "error_code"),
    ({"error_code": "a\u0000"}, "error_code"),
    ({"error_code": "x" * 101}, "error_code"),
    ({"failed_after": "2026-01-01T00:00:00"}, "failed_after"),
    ({"failed_after": "soon"}, "failed_after"),
    ({"failed_before": []}, "failed_before"),
    ({"failed_before": 1e300}, "failed_before"),
    ({"limit": 0}, "limit"),
    ({"limit": 1001}, "limit"),
    ({"limit": None}, "limit"),
    ({"dry_run": None}, "dry_run"),
    ({"dry_run": "false"}, "dry_run"),
    ({"dryrun": True}, "dryrun"),
    ({"tenant_id": "other"}, "tenant_id"),
]


@pytest.mark.parametrize(("asked", "field"), BAD_REQUEUES, ids=range(len(BAD_REQUEUES)))
def test_bad_requeue_filter_requeues_nothing(
    running: RunningSystem, api: Api, nine: Dead, asked: dict[str, Any], field: str
) -> None:
    """Above all a filter that cannot be understood must not be read as "all"."""
    with running.nothing_stored():
        answer = api.post("/v1/dead-letters/requeue", {"subscription_id": nine.subscription_id, **asked})
        assert_problem(answer, 422, "invalid_field", field)


def test_paging_shows_each_dead_letter_once_while_more_arrive(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    dead = Dead(running, refusing_url, 11)
    seen: list[int] = []
    target: str | None = f"/v1/dead-letters?{dead.filter}&limit=3"
    while target:
        page = api.good("GET", target)
        seen += [item["id"] for item in page["items"]]
        post(api, dead.event_type)
        if page["items"]:
            api.good("POST", f"/v1/dead-letters/{page['items'][-1]['id']}/requeue")
        dead_letters(running, dead.subscription_id, len(dead.ids) + len(seen) // 3)
        target = page["next"] and f"/v1/dead-letters?{dead.filter}&limit=3&cursor={page['next']}"
    assert seen == dead.ids


def test_requeue_makes_one_new_saga_and_leaves_the_old_one_alone(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    dead = Dead(running, refusing_url, 1)
    letter = api.good("GET", f"/v1/dead-letters/{dead.ids[0]}")
    old = running.rows("SELECT * FROM webhook_delivery_sagas WHERE id = %s", letter["saga_id"])
    first = api.post(f"/v1/dead-letters/{dead.ids[0]}/requeue")
    assert first.status == 201
    assert first.json()["dead_letter_id"] == dead.ids[0]
    assert first.json()["saga_id"] != letter["saga_id"]
    dead_letters(running, dead.subscription_id, 2)  # the new saga ends as the old one did
    again = api.post(f"/v1/dead-letters/{dead.ids[0]}/requeue")
    assert (again.status, again.json()) == (200, first.json())
    assert running.rows("SELECT * FROM webhook_delivery_sagas WHERE id = %s", letter["saga_id"]) == old
    shown = api.good("GET", f"/v1/dead-letters/{dead.ids[0]}")
    assert shown == {**letter, "requeued_as": first.json()["saga_id"]}
    sagas = api.good("GET", f"/v1/events/{dead.events[0]}")["sagas"]
    assert [saga["requeued_from"] for saga in sagas] == [None, dead.ids[0]]
    assert [len(saga["attempts"]) for saga in sagas] == [1, 1]


def test_twenty_requeues_at_once_start_one_saga(running: RunningSystem, api: Api, refusing_url: str) -> None:
    dead = Dead(running, refusing_url, 1)
    target = f"/v1/dead-letters/{dead.ids[0]}/requeue"
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: api.post(target), range(20)))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    assert len({answer.body for answer in answers}) == 1
    assert len(running.rows("SELECT FROM webhook_delivery_sagas WHERE requeued_from = %s", dead.ids[0])) == 1


@pytest.mark.parametrize("how", ["inactive", "unverified", "deleted"])
def test_requeue_needs_an_active_verified_subscription(
    running: RunningSystem, api: Api, refusing_url: str, how: str
) -> None:
    dead = Dead(running, refusing_url, 1)
    target = f"/v1/subscriptions/{dead.subscription_id}"
    if how == "inactive":
        api.good("PATCH", target, {"active": False})
    elif how == "deleted":
        assert api.call("DELETE", target).status == 204
    else:
        running.run("UPDATE subscriptions SET verified = false WHERE id = %s", dead.subscription_id)
    with running.nothing_stored():
        answer = api.post(f"/v1/dead-letters/{dead.ids[0]}/requeue")
        assert_problem(answer, 409, "subscription_inactive")
        done = api.good("POST", "/v1/dead-letters/requeue", {"subscription_id": dead.subscription_id})
        assert (done["matched"], done["requeued"], done["skipped"]) == (1, 0, 1)
    if how == "inactive":
        api.good("PATCH", target, {"active": True})
        assert api.post(f"/v1/dead-letters/{dead.ids[0]}/requeue").status == 201


def test_dry_run_counts_and_changes_nothing(running: RunningSystem, api: Api, nine: Dead) -> None:
    asked = {"subscription_id": nine.subscription_id, "dry_run": True}
    with running.nothing_stored():
        done = api.good("POST", "/v1/dead-letters/requeue", asked)
        assert done == {"matched": 9, "requeued": 0, "skipped": 0, "dry_run": True}
        done = api.good("POST", "/v1/dead-letters/requeue", {**asked, "limit": 4})
        assert done["matched"] == 4


def test_requeue_by_filter_takes_the_oldest_first_and_each_once(
    running: RunningSystem, api: Api, refusing_url: str
) -> None:
    dead = Dead(running, refusing_url, 5)
    api.good("POST", f"/v1/dead-letters/{dead.ids[-1]}/requeue")
    dead_letters(running, dead.subscription_id, 6)
    api.good("PATCH", f"/v1/subscriptions/{dead.subscription_id}", {"base_delay_seconds": 3600})
    asked = {
        "subscription_id": dead.subscription_id,
        "event_type": dead.event_type,
        "error_code": "connection_refused",
        "failed_after": (datetime.now(UTC) - timedelta(hours=1)).isoformat(),
        "failed_before": api.good("GET", f"/v1/dead-letters/{dead.ids[0]}")["failed_at"],
        "limit": 2,
    }

    def requeued() -> list[int]:
        query = (
            "SELECT requeued_from AS id FROM webhook_delivery_sagas WHERE subscription_id = %s AND requeued_from "
            "IS NOT NULL ORDER BY requeued_from"
        )
        return [row["id"] for row in running.rows(query, dead.subscription_id)]

    oldest_first = dead.ids[::-1]
    done = api.good("POST", "/v1/dead-letters/requeue", asked)
    assert done == {"matched": 2, "requeued": 2, "skipped": 0, "dry_run": False}
    assert requeued() == oldest_first[:3]
    done = api.good("POST", "/v1/dead-letters/requeue", asked)
    assert (done["matched"], done["requeued"]) == (1, 1)
    assert requeued() == oldest_first[:4]  # the newest one failed at failed_before, which is not before it
    assert api.good("POST", "/v1/dead-letters/requeue", asked)["matched"] == 0


def test_no_body_and_an_empty_one_mean_no_filter(running: RunningSystem, api: Api, refusing_url: str) -> None:
    tenant = new_name("alone")
    api = api.with_key(running.new_key(tenant_id=tenant))
    event_type = new_name("alone")
    subscription = subscribe(running, api, event_type, refusing_url)
    post(api, event_type)
    dead_letters(running, subscription["id"], 1)
    for round_number, body in enumerate((None, b"", b"{}"), start=2):
        answer = api.call("POST", "/v1/dead-letters/requeue", body)
        assert (answer.status, answer.json()["requeued"]) == (200, 1)
        dead_letters(running, subscription["id"], round_number)


def test_the_same_port_would_have_refused_a_test_client_too(refusing_url: str) -> None:
    """Otherwise the dead letters above would prove nothing about refusals."""
    port = int(refusing_url.split(":")[2].split("/")[0])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
