"""Which subscriptions an event was routed to, as the API tells it: in the event's answer, and a page at a time."""

from typing import Any

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe


@pytest.fixture
def mine(running: RunningSystem, api: Api) -> Api:
    """A key of a tenant of this test's own."""
    return api.with_key(running.new_key(tenant_id=new_name("routing")))


def routed(api: Api, event_type: str) -> dict[str, Any]:
    """A new event of the type, once it has left the outbox."""
    event_id = post(api, event_type)

    def event() -> dict[str, Any] | None:
        shown = api.good("GET", f"/v1/events/{event_id}")
        return shown if shown["routing"]["state"] == "routed" else None

    return wait_until(event, f"{event_id} is routed")


def test_an_event_tells_who_matched_and_why_the_others_did_not(
    running: RunningSystem, mine: Api, refusing_url: str
) -> None:
    event_type = new_name("order")
    matched = subscribe(running, mine, event_type, refusing_url)["id"]
    inactive = subscribe(running, mine, event_type, refusing_url, active=False)["id"]
    other = subscribe(running, mine, new_name("other"), refusing_url)["id"]
    event_id = routed(mine, event_type)["id"]
    (dead_letter,) = dead_letters(running, matched, 1)
    mine.good("PATCH", f"/v1/subscriptions/{inactive}", {"active": True})
    routing = mine.good("GET", f"/v1/events/{event_id}")["routing"]
    first, second, third = routing["decisions"]
    assert (routing["sagas_started"], routing["waiting_since"], routing["next"]) == (1, None, None)
    assert [one["subscription_id"] for one in (first, second, third)] == [matched, inactive, other]
    assert (first["matched"], first["reason"], first["now"]) == (True, None, None)
    assert first["callback_host"] == "127.0.0.1"
    saga = first["saga"]
    assert (saga["status"], saga["started_by"], saga["attempt_count"]) == ("DeadLettered", "routing", 1)
    assert (saga["attempt_limit"], saga["dead_letter_id"], saga["next_attempt_at"]) == (1, dead_letter, None)
    assert (second["matched"], second["reason"], second["saga"]) == (False, "inactive", None)
    assert (second["then"]["active"], second["now"]["active"]) == (False, True)
    assert (third["reason"], third["now"]) == ("other_event_type", None)


def test_of_an_address_only_the_host_is_told(running: RunningSystem, mine: Api) -> None:
    event_type = new_name("order")
    url = "https://hooks.example.com:8443/secret-path?token=secret-query"
    subscribe(running, mine, event_type, url, headers={"x-secret": "secret-header"}, active=False)
    event_id = routed(mine, event_type)["id"]
    for path in (f"/v1/events/{event_id}", f"/v1/events/{event_id}/routing"):
        answer = mine.get(path)
        assert answer.json()["routing"]["decisions"][0]["callback_host"] == "hooks.example.com"
        assert b"secret" not in answer.body


def test_the_routing_alone_is_that_of_the_event(running: RunningSystem, mine: Api, refusing_url: str) -> None:
    event_type = new_name("order")
    subscribe(running, mine, event_type, refusing_url, active=False)
    event = routed(mine, event_type)
    alone = mine.good("GET", f"/v1/events/{event['id']}/routing")
    assert {name: event[name] for name in alone} == alone


def test_a_key_that_may_only_write_events_reads_it_too(running: RunningSystem, mine: Api) -> None:
    event = routed(mine, new_name("order"))
    writer = mine.with_key(running.new_key("events:write", tenant_id=event["tenant_id"]))
    assert writer.good("GET", f"/v1/events/{event['id']}/routing")["routing"]["decisions"] == []


def test_nothing_of_another_tenant_is_shown(
    running: RunningSystem, api: Api, mine: Api, refusing_url: str
) -> None:
    """Neither its event, nor, in one's own event of the same type, its subscription."""
    event_type = new_name("order")
    theirs = api.with_key(running.new_key(tenant_id=new_name("theirs")))
    subscription = subscribe(running, theirs, event_type, refusing_url, active=False)
    their_event, my_event = routed(theirs, event_type), routed(mine, event_type)
    assert my_event["routing"]["decisions"] == []
    (decision,) = their_event["routing"]["decisions"]
    assert decision["subscription_id"] == subscription["id"]
    assert_problem(mine.get(f"/v1/events/{their_event['id']}/routing"), 404, "event_not_found")
    everything = api.good("GET", f"/v1/events/{their_event['id']}/routing")
    assert everything["routing"]["decisions"] == [decision]


def test_pages_hold_every_subscription_once(running: RunningSystem, mine: Api) -> None:
    event_type = new_name("order")
    tenant_id = routed(mine, event_type)["tenant_id"]
    running.run(
        "INSERT INTO subscriptions (tenant_id, event_types, callback_url)"
        " SELECT %s, ARRAY[CASE WHEN n %% 10 = 0 THEN %s ELSE 'other' END], 'https://example.com/'"
        "   FROM generate_series(1, 300) AS n",
        tenant_id,
        event_type,
    )
    event = routed(mine, event_type)
    shown = event["routing"]["decisions"]
    assert len(shown) == 250
    assert [one["reason"] for one in shown] == ["unverified"] * 30 + ["other_event_type"] * 220
    path = f"/v1/events/{event['id']}/routing"
    rest = mine.good("GET", f"{path}?cursor={event['routing']['next']}")["routing"]
    assert (len(rest["decisions"]), rest["next"]) == (50, None)
    ids = [one["subscription_id"] for one in [*shown, *rest["decisions"]]]
    assert len(set(ids)) == 300
    assert len(mine.good("GET", path)["routing"]["decisions"]) == 50
    pages, target = list[int](), f"{path}?limit=101"
    while target:
        page = mine.good("GET", target)["routing"]
        pages += [one["subscription_id"] for one in page["decisions"]]
        target = page["next"] and f"{path}?limit=101&cursor={page['next']}"
    assert pages == ids


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ("limit=0", "invalid_parameter", "limit"),
        ("limit=251", "invalid_parameter", "limit"),
        ("cursor=", "invalid_cursor", "cursor"),
        ("cursor=0000000000000001", "invalid_cursor", "cursor"),
        ("cursor=30000000000000001", "invalid_cursor", "cursor"),
        ("cursor=08000000000000000", "invalid_cursor", "cursor"),
        ("cursor=0000000000000000a", "invalid_cursor", "cursor"),
        ("cursor=00000000000000001%0A", "invalid_cursor", "cursor"),
        ("surprise=1", "unknown_parameter", "surprise"),
    ],
)
def test_what_is_no_page_is_refused(mine: Api, query: str, code: str, field: str) -> None:
    event_id = post(mine, new_name("order"))
    assert_problem(mine.get(f"/v1/events/{event_id}/routing?{query}"), 422, code, field)


def test_the_last_possible_cursor_leads_nowhere(mine: Api) -> None:
    event_id = routed(mine, new_name("order"))["id"]
    routing = mine.good("GET", f"/v1/events/{event_id}/routing?cursor=27FFFFFFFFFFFFFFF")["routing"]
    assert (routing["decisions"], routing["next"]) == ([], None)


def test_an_unknown_event_has_no_routing(mine: Api) -> None:
    for wrong in ("evt_1", f"evt_{'0' * 32}"):
        assert_problem(mine.get(f"/v1/events/{wrong}/routing"), 404, "event_not_found")
