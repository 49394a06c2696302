"""GET /v1/events: every filter, alone and with others, by pages and within the tenant."""

from typing import Any
from urllib.parse import urlencode

import pytest

from hooksaga.operations import find_events, search
from tests.api.http_client import Api, assert_problem, event_body
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, subscribe


class Shop:
    """A tenant with one event of each state. Idempotency keys are their names."""

    def __init__(self, running: RunningSystem, url: str) -> None:
        self.tenant = new_name("shop")
        self.api = running.api.with_key(running.new_key(tenant_id=self.tenant))
        self.dying, self.unheard = new_name("dying"), new_name("unheard")
        self.subscription = subscribe(running, self.api, self.dying, url)["id"]
        self.ids = {"dead": self._post(self.dying, "dead")}
        (self.letter,) = dead_letters(running, self.subscription, 1)
        self.ids["delivered"] = self._post(self.dying, "delivered")
        dead_letters(running, self.subscription, 2)
        self._rewrite(running, "delivered", "Completed")
        self.api.good("POST", f"/v1/subscriptions/{self.subscription}/pause")
        self.ids["waiting"] = self._post(self.dying, "waiting")
        self.ids["none"] = self._post(self.unheard, "none")
        query = "SELECT 1 FROM routing_outbox"
        wait_until(lambda: not running.rows(query), "all are routed")

    def _post(self, event_type: str, key: str) -> str:
        answer = self.api.post_event(event_body(event_type), ("idempotency-key", key))
        assert answer.status == 202, answer
        return answer.json()["id"]

    def _rewrite(self, running: RunningSystem, key: str, status: str) -> None:
        """No receiver of this test answers 2xx, so the past is rewritten."""
        event = "(SELECT id FROM events WHERE external_id = %s AND tenant_id = %s)"
        running.run("SET session_replication_role = replica")
        running.run(f"DELETE FROM dead_letters WHERE event_id = {event}", key, self.tenant)  # pyright: ignore[reportArgumentType]
        running.run(
            f"UPDATE webhook_delivery_sagas SET status = %s WHERE event_id = {event}",  # pyright: ignore[reportArgumentType]
            status,
            key,
            self.tenant,
        )
        running.run("SET session_replication_role = DEFAULT")

    def found(self, query: str = "") -> list[str]:
        return names(self, self.api.good("GET", f"/v1/events?{query}")["items"])


def names(shop: Shop, items: list[dict[str, Any]]) -> list[str]:
    by_id = {identity: name for name, identity in shop.ids.items()}
    return [by_id[item["id"]] for item in items]


@pytest.fixture(scope="module")
def shop(running: RunningSystem, refusing_url: str) -> Shop:
    return Shop(running, refusing_url)


def test_events_are_listed_newest_first_with_their_deliveries(shop: Shop) -> None:
    items = shop.api.good("GET", "/v1/events")["items"]
    assert names(shop, items) == ["none", "waiting", "delivered", "dead"]
    facts = [[one[name] for name in ("deliveries", "completed", "open", "dead", "routed")] for one in items]
    assert facts == [
        [0, 0, 0, 0, True],
        [1, 0, 1, 0, True],
        [1, 1, 0, 0, True],
        [1, 0, 0, 1, True],
    ]
    assert [one["idempotency_key"] for one in items] == ["none", "waiting", "delivered", "dead"]
    assert {one["tenant_id"] for one in items} == {shop.tenant}


@pytest.mark.parametrize("status", ["waiting", "dead", "delivered", "none"])
def test_an_event_is_found_by_its_state(shop: Shop, status: str) -> None:
    assert shop.found(f"status={status}") == [status]


def test_a_requeued_event_is_not_dead_any_more(running: RunningSystem, refusing_url: str) -> None:
    """It waits; and once it has failed again, its newest dead letter stands for it, once."""
    shop = Shop(running, refusing_url)
    shop.api.good("POST", f"/v1/dead-letters/{shop.letter}/requeue")
    assert shop.found("status=dead") == []
    assert sorted(shop.found("status=waiting")) == ["dead", "waiting"]
    shop.api.good("POST", f"/v1/subscriptions/{shop.subscription}/resume")
    wait_until(lambda: sorted(shop.found("status=dead")) == ["dead", "waiting"], "both are dead")


@pytest.mark.parametrize("most", [1, 10_000])
def test_waiting_events_are_found_however_much_is_open(
    running: RunningSystem, refusing_url: str, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """From open work where that is little, and else from the newest events."""
    shop = Shop(running, refusing_url)
    monkeypatch.setattr(find_events, "MAX_OPEN", most)
    assert shop.found("status=waiting") == ["waiting"]
    assert shop.found(f"status=waiting&event_type={shop.unheard}") == []


def test_filters_are_combined(shop: Shop) -> None:
    assert shop.found(f"event_type={shop.unheard}") == ["none"]
    assert shop.found("idempotency_key=dead") == ["dead"]
    assert shop.found(f"idempotency_key=dead&event_type={shop.unheard}") == []
    assert shop.found("idempotency_key=dead&status=dead") == ["dead"]
    assert shop.found("idempotency_key=dead&status=waiting") == []
    assert shop.found(f"status=dead&event_type={shop.dying}") == ["dead"]
    assert shop.found(f"subscription_id={shop.subscription}&idempotency_key=dead") == ["dead"]
    assert shop.found("error_code=connection_refused&status=dead") == ["dead"]
    assert shop.found("error_code=http_418") == []


def test_times_of_acceptance_bound_every_search(running: RunningSystem, shop: Shop) -> None:
    items = shop.api.good("GET", "/v1/events")["items"]
    middle = items[1]["created_at"]
    assert shop.found(f"accepted_after={middle}") == ["none", "waiting"]
    assert shop.found(f"accepted_before={middle}") == ["delivered", "dead"]
    assert shop.found(f"accepted_before={middle}&status=dead") == ["dead"]
    assert shop.found(f"accepted_after={middle}&status=dead") == []
    assert shop.found(f"accepted_after={middle}&status=waiting") == ["waiting"]
    assert shop.found(f"accepted_before={middle}&idempotency_key=none") == []


def test_states_that_retention_forgets_are_searched_within_a_day(
    running: RunningSystem, refusing_url: str
) -> None:
    shop = Shop(running, refusing_url)
    running.run("SET session_replication_role = replica")
    older = "UPDATE events SET created_at = created_at - interval '25 hours' WHERE tenant_id = %s"
    running.run(older, shop.tenant)
    running.run("SET session_replication_role = DEFAULT")
    assert (shop.found("status=delivered"), shop.found("status=none")) == ([], [])
    assert (shop.found("status=dead"), shop.found("status=waiting")) == (["dead"], ["waiting"])


@pytest.mark.parametrize("query", ["", "status=dead&", "event_type={type}&", "status=waiting&"])
def test_each_event_is_on_one_page(running: RunningSystem, refusing_url: str, query: str) -> None:
    api = running.api.with_key(running.new_key(tenant_id=new_name("pages")))
    event_type = new_name("paged")
    subscription = subscribe(running, api, event_type, refusing_url)["id"]
    if "waiting" in query:
        api.good("POST", f"/v1/subscriptions/{subscription}/pause")
    wanted = [api.post_event(event_body(event_type)).json()["id"] for _ in range(5)]
    if "waiting" not in query:
        dead_letters(running, subscription, 5)
    seen: list[str] = []
    target = f"/v1/events?limit=2&{query}".replace("{type}", event_type)
    page = api.good("GET", target)
    while True:
        seen += [item["id"] for item in page["items"]]
        assert len(page["items"]) <= 2
        if page["next"] is None:
            break
        page = api.good("GET", f"{target}&cursor={page['next']}")
    assert seen == wanted[::-1]


@pytest.mark.parametrize("place", ["api", "shop"])
def test_whatever_names_an_event_finds_it(shop: Shop, api: Api, place: str) -> None:
    """As an operator of all tenants, and with the tenant's key."""
    caller = api if place == "api" else shop.api
    event = shop.ids["dead"]
    digits = event.removeprefix("evt_")
    for text in (
        event,
        digits,
        f"evt_{digits[:8]}…{digits[-8:]}",
        f"...{digits[-6:]}",
        digits[-12:],
        event[:21],
    ):
        found = caller.good("GET", f"/v1/events?search={text.replace('…', '%E2%80%A6')}")
        assert event in [item["id"] for item in found["items"]], text
        assert found["next"] is None
    by_key = caller.good("GET", f"/v1/events?search=dead&tenant_id={shop.tenant}")
    assert [item["id"] for item in by_key["items"]] == [event]
    assert caller.good("GET", "/v1/events?search=evt_ffffffffffffffff")["items"] == []


def test_nothing_of_another_tenant_is_found(running: RunningSystem, shop: Shop) -> None:
    stranger = running.api.with_key(running.new_key(tenant_id=new_name("stranger")))
    digits = shop.ids["dead"].removeprefix("evt_")
    for query in (
        "",
        "status=dead",
        "status=waiting",
        "idempotency_key=dead",
        f"event_type={shop.dying}",
        f"subscription_id={shop.subscription}",
        f"search={shop.ids['dead']}",
        f"search={digits[-8:]}",
        "search=dead",
    ):
        assert stranger.good("GET", f"/v1/events?{query}") == {"items": [], "next": None}, query
    assert_problem(
        stranger.get(f"/v1/events?tenant_id={shop.tenant}"), 403, "tenant_not_allowed", "tenant_id"
    )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=late", "status"),
        ("idempotency_key=", "idempotency_key"),
        (f"search={'x' * 256}", "search"),
        ("accepted_after=yesterday", "accepted_after"),
        ("subscription_id=0", "subscription_id"),
        ("format=xml", "format"),
    ],
)
def test_a_wrong_filter_is_named(api: Api, query: str, field: str) -> None:
    assert_problem(api.get(f"/v1/events?{query}"), 422, "invalid_parameter", field)


@pytest.mark.parametrize("cursor", ["", "x", "0" * 16, "00" * 20])
def test_a_cursor_is_of_this_list(api: Api, cursor: str) -> None:
    assert_problem(api.get(f"/v1/events?cursor={cursor}"), 422, "invalid_cursor", "cursor")


ATTRIBUTES = {
    "order_id": "ORD-10100",
    "total": 19.90,
    "express": True,
    "digits": "42",
    "odd.name-_": 'a "b" \\ ü',
}


@pytest.fixture(scope="module")
def ordered(running: RunningSystem) -> tuple[Api, str]:
    """A tenant, and the id of its event with attributes; others have other ones."""
    api = running.api.with_key(running.new_key(tenant_id=new_name("orders")))
    for attributes in (ATTRIBUTES, {"order_id": "ORD-10101", "total": 20}, {"note": "ORD-1010"}, {}):
        wanted = {"event_type": "order.paid", "payload": {}, "attributes": attributes}
        api.good("POST", "/v1/events", wanted)
    return api, api.good("GET", "/v1/events")["items"][-1]["id"]


@pytest.mark.parametrize(
    "pair",
    [
        "order_id:ORD-10100",
        "total:19.9",
        "total:19.90",
        "express:true",
        "digits:42",
        'odd.name-_:a "b" \\ ü',
    ],
)
def test_an_event_is_found_by_an_attribute(ordered: tuple[Api, str], pair: str) -> None:
    """With its name, and by the value alone."""
    api, event = ordered
    found = api.good("GET", f"/v1/events?{urlencode({'attribute': pair})}")
    assert [item["id"] for item in found["items"]] == [event]
    assert found["items"][0]["attributes"] == ATTRIBUTES
    value = pair.partition(":")[2]
    by_value = api.good("GET", f"/v1/events?{urlencode({'search': value})}")
    assert event in [item["id"] for item in by_value["items"]]


@pytest.mark.parametrize(
    "pair", ["order_id:ORD-1010", "order_id:", "note:ORD-10100", "total:19", "express:false", "digits:4"]
)
def test_nothing_else_is_found_by_it(ordered: tuple[Api, str], pair: str) -> None:
    assert ordered[0].good("GET", f"/v1/events?attribute={pair}") == {"items": [], "next": None}


def test_an_attribute_of_another_tenant_finds_nothing(
    running: RunningSystem, ordered: tuple[Api, str]
) -> None:
    stranger = running.api.with_key(running.new_key(tenant_id=new_name("stranger")))
    for query in ("attribute=order_id:ORD-10100", "search=ORD-10100"):
        assert stranger.good("GET", f"/v1/events?{query}") == {"items": [], "next": None}
        assert ordered[1] in [item["id"] for item in running.api.good("GET", f"/v1/events?{query}")["items"]]


@pytest.mark.parametrize("most", [2, 5_000])
def test_a_common_value_is_found_too_by_pages(
    running: RunningSystem, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Of few events from the index, of many among the newest; and with other filters."""
    monkeypatch.setattr(search, "MAX_OF_VALUE", most)
    monkeypatch.setattr(find_events, "MAX_OF_VALUE", most)
    api = running.api.with_key(running.new_key(tenant_id=new_name("common")))
    wanted: list[str] = []
    for number in range(5):
        event = {"event_type": f"t.{number % 2}", "payload": 1, "attributes": {"region": "eu", "n": number}}
        wanted.append(api.good("POST", "/v1/events", event)["id"])
        api.good("POST", "/v1/events", {"event_type": "t.0", "payload": 1, "attributes": {"region": "us"}})
    seen: list[str] = []
    page = api.good("GET", "/v1/events?attribute=region:eu&limit=2")
    while page["next"] is not None:
        seen += [item["id"] for item in page["items"]]
        page = api.good("GET", f"/v1/events?attribute=region:eu&limit=2&cursor={page['next']}")
    seen += [item["id"] for item in page["items"]]
    assert seen == wanted[::-1]
    odd = api.good("GET", "/v1/events?attribute=region:eu&event_type=t.1")["items"]
    assert [item["id"] for item in odd] == [wanted[3], wanted[1]]


@pytest.mark.parametrize("wrong", ["order_id", ":x", "a b:c", f"x:{'y' * 201}", ""])
def test_what_is_no_attribute_is_refused(api: Api, wrong: str) -> None:
    answer = api.get(f"/v1/events?{urlencode({'attribute': wrong})}")
    assert_problem(answer, 422, "invalid_parameter", "attribute")
