"""The search box: what a person has at hand leads to the one page, or to a list, within the tenant."""

import json

import pytest
from psycopg import sql

from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, subscribe
from tests.console.pages import Pages, portal

REFUSING = "https://127.0.0.1:1/hook"
KEY, VALUE = new_name("ORD"), new_name("INV")


class Found:
    """A tenant with an event that has a key, and what came of it."""

    def __init__(self, running: RunningSystem) -> None:
        self.tenant = new_name("shop")
        self.key = running.new_key(tenant_id=self.tenant)
        api, event_type = running.api.with_key(self.key), new_name("order")
        self.subscription = subscribe(running, api, event_type, REFUSING)["id"]
        body = {"event_type": event_type, "payload": {}, "attributes": {"order_id": VALUE}}
        answer = api.post_event(json.dumps(body).encode(), ("idempotency-key", KEY))
        self.event = str(answer.json()["id"])
        (self.dead_letter,) = dead_letters(running, self.subscription, 1)
        row = running.rows(
            "SELECT id, saga_id FROM webhook_delivery_jobs WHERE subscription_id = %s", self.subscription
        )[0]
        self.attempt, self.saga = row["id"], row["saga_id"]


@pytest.fixture(scope="module")
def found(running: RunningSystem) -> Found:
    for table, begin in BEGINS.items():
        statement = sql.SQL("ALTER TABLE {} ALTER id RESTART WITH {}")
        running.database.execute(statement.format(sql.Identifier(table), sql.Literal(begin)))
    return Found(running)


BEGINS = {
    "subscriptions": 1_000,
    "webhook_delivery_sagas": 2_000,
    "webhook_delivery_jobs": 3_000,
    "dead_letters": 4_000,
}
"""So that no number names two things."""


def led_to(pages: Pages, text: str) -> str:
    answer = pages.get(f"{pages.base}/search?q={text}")
    assert answer.status == 303, answer.text
    return answer.headers["location"].removeprefix(pages.base)


def opened(running: RunningSystem, found: Found, place: str) -> Pages:
    if place == "console":
        return Pages(running.port).signed_in(running.key)
    link = str(running.api.good("POST", "/v1/portal-links", {"tenant_id": found.tenant})["url"])
    return portal(running.port, link.partition(str(running.port))[2])


@pytest.mark.parametrize("place", ["console", "portal"])
def test_whatever_is_at_hand_leads_to_its_page(running: RunningSystem, found: Found, place: str) -> None:
    pages, event = opened(running, found, place), found.event
    digits = event.removeprefix("evt_")
    shortened = f"evt_{digits[:8]}%E2%80%A6{digits[-8:]}"
    for text in (
        event,
        digits,
        event.upper(),
        shortened,
        f"...{digits[-8:]}",
        event[:20],
        digits[-8:],
        KEY,
        VALUE,
    ):
        assert led_to(pages, text) == f"/events/{event}", text
    assert led_to(pages, str(found.subscription)) == f"/subscriptions/{found.subscription}"
    assert led_to(pages, str(found.saga)) == f"/events/{event}#saga-{found.saga}"
    assert led_to(pages, str(found.dead_letter)) == f"/dead-letters/{found.dead_letter}"
    assert led_to(pages, str(found.attempt)) == f"/deliveries/{found.attempt}"
    shown = pages.page(f"{pages.base}/deliveries").body
    assert f"evt_{digits[:8]}…{digits[-8:]}" in shown, "lists shorten ids to what the search takes"


def test_of_several_matches_there_is_a_list(running: RunningSystem, found: Found, pages: Pages) -> None:
    """One key in two tenants. A key of one tenant finds its own."""
    other = Found(running)
    shown = pages.page(f"/console/search?q={KEY}")
    links = shown.links("/console/events/")
    assert {f"/console/events/{one.event}" for one in (found, other)} <= set(links)
    assert found.tenant in shown.text
    own = Pages(running.port).signed_in(other.key)
    assert led_to(own, KEY) == f"/events/{other.event}"


def test_nothing_of_another_tenant_is_found(running: RunningSystem, found: Found) -> None:
    stranger = Pages(running.port).signed_in(running.new_key(tenant_id=new_name("stranger")))
    digits = found.event.removeprefix("evt_")
    for text in (
        found.event,
        digits[-8:],
        found.event[:20],
        KEY,
        VALUE,
        *map(str, (found.saga, found.dead_letter)),
    ):
        shown = stranger.page(f"/console/search?q={text}")
        assert "Nothing matches" in shown.text
        assert not shown.links("/console/events/evt")


def test_only_what_the_key_may_open_is_found(running: RunningSystem, found: Found) -> None:
    own = Pages(running.port).signed_in(running.new_key("subscriptions:write", tenant_id=found.tenant))
    assert led_to(own, str(found.subscription)) == f"/subscriptions/{found.subscription}"
    for text in (found.event, str(found.dead_letter), str(found.saga)):
        assert "Nothing matches" in own.page(f"/console/search?q={text}").text


def test_an_empty_search_tells_what_can_be_found(pages: Pages) -> None:
    assert "whole or shortened" in pages.page("/console/search?q=").text
    refused = pages.get(f"/console/search?q={'x' * 256}")
    assert (refused.status, "255" in refused.text) == (422, True)
