"""The attempt log over HTTP: filters, cursors, tenants, and secrets that never come out."""

import os
from typing import Any

import pytest

from hooksaga.operations import attempt_log, inspect
from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe

HUSH = f"canary-{os.urandom(8).hex()}"


@pytest.fixture
def tenant(running: RunningSystem) -> str:
    return new_name("attempts")


@pytest.fixture
def mine(running: RunningSystem, tenant: str) -> Api:
    """The API with a key of a tenant that no other test has."""
    return running.api.with_key(running.new_key(tenant_id=tenant))


def refused_attempts(running: RunningSystem, api: Api, url: str, how_many: int) -> dict[str, Any]:
    """A subscription with so many attempts that were refused, one per event."""
    event_type = new_name("tried")
    created = subscribe(running, api, event_type, url, headers={"authorization": HUSH})
    for _ in range(how_many):
        post(api, event_type)
    dead_letters(running, created["id"], how_many)
    return created


def listed(api: Api, query: str = "") -> list[dict[str, Any]]:
    return api.good("GET", f"/v1/attempts?{query}")["items"]


def test_an_attempt_is_told_whole(running: RunningSystem, mine: Api, refusing_url: str, tenant: str) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 1)
    (attempt,) = listed(mine)
    told = {name: attempt[name] for name in ("tenant_id", "subscription_id", "event_type", "status")}
    assert told == {
        "tenant_id": tenant,
        "subscription_id": subscription["id"],
        "event_type": subscription["event_type"],
        "status": "Failed",
    }
    assert (attempt["attempt_number"], attempt["max_attempts"], attempt["trigger"]) == (1, 1, "first")
    assert (attempt["response_status"], attempt["error_code"]) == (None, "connection_refused")
    assert (attempt["resolved_ip"], attempt["claim_count"]) == ("127.0.0.1", 1)
    assert attempt["worker_id"]
    assert attempt["attempt_at"] <= attempt["leased_at"] <= attempt["finished_at"]
    whole = mine.good("GET", f"/v1/attempts/{attempt['id']}")
    assert {name: whole[name] for name in attempt} == attempt
    sent = whole["request_headers"]
    assert sent["webhook-id"] == attempt["event_id"]
    assert (sent["webhook-signature"], sent["authorization"]) == ("***", "***")
    assert (sent["hooksaga-event-type"], sent["hooksaga-attempt"]) == (subscription["event_type"], "1")
    shown = mine.good("GET", f"/v1/events/{attempt['event_id']}")["sagas"][0]["attempts"][0]
    for name in ("max_attempts", "trigger", "request_headers"):
        assert shown[name] == whole[name]


def test_a_requeue_says_so(running: RunningSystem, mine: Api, refusing_url: str) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 1)
    (letter,) = dead_letters(running, subscription["id"], 1)
    mine.good("POST", f"/v1/dead-letters/{letter}/requeue")
    dead_letters(running, subscription["id"], 2)
    assert [one["trigger"] for one in listed(mine)] == ["requeue", "first"]
    newest = mine.good("GET", f"/v1/attempts/{listed(mine)[0]['id']}")
    assert newest["requeued_from"] == letter
    assert newest["request_headers"]["hooksaga-started-by"] == "requeue"


def test_each_filter_leaves_out_what_it_does_not_mean(
    running: RunningSystem, mine: Api, refusing_url: str
) -> None:
    one, other = (refused_attempts(running, mine, refusing_url, 2) for _ in range(2))
    assert len(listed(mine)) == 4
    newest = listed(mine)[0]["finished_at"]
    for query, wanted in (
        (f"subscription_id={one['id']}", 2),
        (f"event_type={other['event_type']}", 2),
        (f"event_type={other['event_type']}&subscription_id={one['id']}", 0),
        ("status_class=none", 4),
        ("status_class=5xx", 0),
        ("status_class=2xx", 0),
        ("error_code=connection_refused", 4),
        ("error_code=http_500", 0),
        ("outcome=failed", 4),
        ("outcome=completed", 0),
        (f"finished_before={newest}", 3),
        (f"finished_after={newest}", 1),
        ("limit=3", 3),
    ):
        found = listed(mine, query)
        assert len(found) == wanted, query


def test_pages_show_each_attempt_once_while_attempts_are_added(
    running: RunningSystem, mine: Api, refusing_url: str
) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 7)
    wanted = [one["id"] for one in listed(mine)]
    seen: list[int] = []
    added, cursor = 7, ""
    while True:
        page = mine.good("GET", f"/v1/attempts?limit=2&subscription_id={subscription['id']}{cursor}")
        seen += [one["id"] for one in page["items"]]
        if page["next"] is None:
            break
        post(mine, subscription["event_type"])
        added += 1
        dead_letters(running, subscription["id"], added)
        cursor = f"&cursor={page['next']}"
    assert seen == wanted


def test_a_follower_gets_what_ends_after_it_came(
    running: RunningSystem, mine: Api, refusing_url: str
) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 1)
    page = mine.good("GET", "/v1/attempts/follow?outcome=failed&limit=1")
    assert (page["items"], page["more"]) == ([], False)
    for _ in range(3):
        post(mine, subscription["event_type"])
    dead_letters(running, subscription["id"], 4)
    seen: set[int] = set()

    def all_came() -> bool:
        nonlocal page
        page = mine.good("GET", f"/v1/attempts/follow?outcome=failed&limit=1&cursor={page['next']}")
        seen.update(one["id"] for one in page["items"])
        return len(seen) == 3 and not page["more"]

    wait_until(all_came, "three attempts")
    assert seen == {one["id"] for one in listed(mine, "limit=3")}


WRONG = [
    ("status_class=6xx", "invalid_parameter", "status_class"),
    ("status_class=", "invalid_parameter", "status_class"),
    ("outcome=Failed", "invalid_parameter", "outcome"),
    ("finished_after=yesterday", "invalid_parameter", "finished_after"),
    ("subscription_id=x", "invalid_parameter", "subscription_id"),
    ("error_code=%00", "invalid_parameter", "error_code"),
    ("limit=251", "invalid_parameter", "limit"),
    ("surprise=1", "unknown_parameter", "surprise"),
    ("cursor=", "invalid_cursor", "cursor"),
    ("cursor=0000000000000001", "invalid_cursor", "cursor"),
    ("cursor=" + "F" * 32, "invalid_cursor", "cursor"),
    ("cursor=" + "7" + "F" * 15 + "0" * 16, "invalid_cursor", "cursor"),
    ("cursor=%C3%BC", "invalid_cursor", "cursor"),
]


@pytest.mark.parametrize(("query", "code", "field"), WRONG, ids=[one[0][:24] for one in WRONG])
@pytest.mark.parametrize("path", ["/v1/attempts", "/v1/attempts/follow"])
def test_what_is_wrong_is_refused(api: Api, path: str, query: str, code: str, field: str) -> None:
    if path.endswith("follow") and "finished" in query:
        code = "unknown_parameter"
    assert_problem(api.get(f"{path}?{query}"), 422, code, field)


def test_a_cursor_of_one_list_is_none_of_the_other(api: Api) -> None:
    following = api.good("GET", "/v1/attempts/follow")["next"]
    assert_problem(api.get(f"/v1/attempts?cursor={following}"), 422, "invalid_cursor", "cursor")


def test_the_stats_of_a_subscription(running: RunningSystem, mine: Api, refusing_url: str) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 2)
    for window, hours in (("", 24), ("?window=24h", 24), ("?window=1h", 1)):
        stats = mine.good("GET", f"/v1/subscriptions/{subscription['id']}/stats{window}")
        assert (stats["window_hours"], stats["completed"], stats["failed"]) == (hours, 0, 2)
        assert (stats["success_rate"], stats["since"], stats["next_retry_at"]) == (0, None, None)
        assert stats["last_error"]["code"] == "connection_refused"
        assert stats["backlog"] == {"pending": 0, "leased": 0, "waiting_retry": 0}
        assert set(stats["latency_ms"]) == {"p50", "p95", "p99"}
    wrong = mine.get(f"/v1/subscriptions/{subscription['id']}/stats?window=1w")
    assert_problem(wrong, 422, "invalid_parameter", "window")


def test_a_planted_header_value_is_in_no_answer(running: RunningSystem, mine: Api, refusing_url: str) -> None:
    subscription = refused_attempts(running, mine, refusing_url, 1)
    (attempt,) = listed(mine)
    (letter,) = dead_letters(running, subscription["id"], 1)
    targets = (
        "/v1/attempts",
        f"/v1/attempts/{attempt['id']}",
        f"/v1/events/{attempt['event_id']}",
        f"/v1/subscriptions/{subscription['id']}",
        f"/v1/subscriptions/{subscription['id']}/stats",
        f"/v1/dead-letters/{letter}",
    )
    for target in targets:
        answer = mine.get(target)
        assert answer.status == 200
        assert HUSH not in answer.body.decode(), target
        assert subscription["secret"] not in answer.body.decode(), target


def test_an_event_shows_the_beginning_of_each_answer_and_the_attempt_the_whole(
    running: RunningSystem, mine: Api, refusing_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers of an event to a thousand subscriptions would fit into no answer of the API."""
    subscription = refused_attempts(running, mine, refusing_url, 2)
    running.run("ALTER TABLE webhook_delivery_jobs DISABLE TRIGGER USER")
    running.run(
        "UPDATE webhook_delivery_jobs SET response_body = repeat('x', 16384) WHERE subscription_id = %s",
        subscription["id"],
    )
    running.run("ALTER TABLE webhook_delivery_jobs ENABLE TRIGGER USER")
    newest = listed(mine)[0]
    (shown,) = mine.good("GET", f"/v1/events/{newest['event_id']}")["sagas"][0]["attempts"]
    assert (shown["response_body"], shown["response_truncated"]) == ("x" * inspect.MAX_ANSWER_SHOWN, True)
    whole = mine.good("GET", f"/v1/attempts/{newest['id']}")
    assert (whole["response_body"], whole["response_truncated"]) == ("x" * 16_384, False)
    monkeypatch.setattr(inspect, "MAX_ATTEMPTS_SHOWN", 0)
    assert mine.good("GET", f"/v1/events/{newest['event_id']}")["sagas"][0]["attempts"] == []


def test_another_tenants_subscription_is_as_an_unknown_one(
    running: RunningSystem, mine: Api, api: Api, refusing_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even how far a page gets along its attempts is told."""
    theirs = refused_attempts(running, api, refusing_url, 4)
    monkeypatch.setattr(attempt_log, "MAX_SCANNED", 2)
    path = "/v1/attempts?limit=1&subscription_id="
    assert api.good("GET", f"{path}{theirs['id']}")["next"]
    unknown, foreign = (mine.good("GET", f"{path}{one}") for one in (2**40, theirs["id"]))
    assert foreign == unknown == {"items": [], "next": None}
