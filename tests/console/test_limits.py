"""Where a page shows a part only, it says so; and it asks for no more once nothing changes."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from hooksaga.console import events, subscriptions
from hooksaga.operations import attempt_log, subscription_stats
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, Shown, portal, tags

REFUSING = "https://127.0.0.1:1/hook"


@dataclass(frozen=True)
class Sent:
    """One event and its subscription."""

    subscription: int
    event: str
    event_type: str


def sent(running: RunningSystem, **more: int) -> Sent:
    event_type = new_name("limit")
    subscription = subscribe(running, running.api, event_type, REFUSING, **more)["id"]
    return Sent(subscription, post(running.api, event_type), event_type)


@pytest.fixture(scope="module")
def given_up(running: RunningSystem) -> Sent:
    one = sent(running)
    dead_letters(running, one.subscription, 1)
    return one


@pytest.fixture(scope="module")
def waiting(running: RunningSystem) -> Sent:
    """Its next attempt is an hour away."""
    one = sent(running, max_retry_limit=5, base_delay_seconds=3600)
    query = "SELECT 1 FROM webhook_delivery_sagas WHERE subscription_id = %s AND status = 'PendingRetry'"
    wait_until(lambda: running.rows(query, one.subscription), "it waits for its retry")
    return one


@pytest.fixture(scope="module")
def crowd(running: RunningSystem) -> str:
    """A tenant with one event type, and one subscription more than pages merge or count."""
    tenant = new_name("crowd")
    assert attempt_log.MAX_MERGED == events.DELIVERIES_COUNTED
    for _ in range(events.DELIVERIES_COUNTED + 1):
        wanted = {"event_type": tenant, "callback_url": REFUSING, "tenant_id": tenant}
        running.api.good("POST", "/v1/subscriptions", wanted)
    running.run("UPDATE subscriptions SET verified = true WHERE tenant_id = %s", tenant)
    return tenant


def figure(body: str, words: str) -> str:
    """The number above the words."""
    found = re.search(rf"<b>([^<]*)</b><span>{re.escape(words)}</span>", body)
    assert found is not None, words
    return found[1]


def test_a_subscriptions_numbers_are_marked_where_only_its_newest_attempts_count(
    given_up: Sent, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/console/subscriptions/{given_up.subscription}"
    whole = pages.page(path)
    assert figure(whole.body, "failed in 24 h") == "1"
    assert "attempts only, since" not in whole.text
    monkeypatch.setattr(subscription_stats, "SAMPLE", 1)
    monkeypatch.setattr(subscriptions, "SAMPLE", 1)
    part = pages.page(path)
    assert figure(part.body, "failed in 24 h") == "1+"
    assert figure(part.body, "completed in 24 h") == "0+"
    assert "Covers the newest 1 attempts, since 2" in part.text


def test_what_waits_is_marked_where_counting_ends(
    waiting: Sent, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/console/subscriptions/{waiting.subscription}"
    assert figure(pages.page(path).body, "waiting for a retry") == "1"
    monkeypatch.setattr(subscription_stats, "MAX_COUNTED", 1)
    monkeypatch.setattr(subscriptions, "MAX_COUNTED", 1)
    assert figure(pages.page(path).body, "waiting for a retry") == "1+"
    assert figure(pages.page(path).body, "ready or in flight") == "0"


def test_an_events_deliveries_are_marked_where_there_are_more_than_are_counted(
    running: RunningSystem, given_up: Sent, crowd: str, pages: Pages
) -> None:
    assert "1 dead" in pages.page(f"/console/events?type={given_up.event_type}").text
    key = running.new_key(tenant_id=crowd)
    post(running.api.with_key(key), crowd)
    query = (
        "SELECT g.id FROM webhook_delivery_sagas g JOIN subscriptions s ON s.id = g.subscription_id "
        "WHERE s.tenant_id = %s"
    )
    wanted = events.DELIVERIES_COUNTED + 1
    wait_until(lambda: len(running.rows(query, crowd)) == wanted, "it is routed to all")
    counts = re.findall(
        r"(\d\S*) (?:completed|open|dead)\b", pages.page(f"/console/events?type={crowd}").text
    )
    assert counts
    assert all(count.endswith("+") for count in counts), counts
    assert sum(int(count[:-1]) for count in counts) == events.DELIVERIES_COUNTED


def test_the_portal_lists_deliveries_of_more_subscriptions_than_are_merged(
    running: RunningSystem, given_up: Sent, crowd: str
) -> None:
    """And none of another tenant."""
    link = str(running.api.good("POST", "/v1/portal-links", {"tenant_id": crowd})["url"])
    pages = portal(running.port, link.partition(str(running.port))[2])
    post(running.api.with_key(running.new_key(tenant_id=crowd)), crowd)
    wait_until(lambda: crowd in pages.page("/portal/deliveries").text, "its attempts are listed")
    assert given_up.event_type not in pages.page("/portal/deliveries").text


def renews(shown: Shown) -> bool:
    """Whether a browser asks for the page again."""
    (region,) = [found for _, found in tags(shown.body) if found.get("id") == "live"]
    return "data-every" in region


def test_an_events_page_is_renewed_until_nothing_changes(waiting: Sent, given_up: Sent, pages: Pages) -> None:
    assert renews(pages.page(f"/console/events/{waiting.event}"))
    assert not renews(pages.page(f"/console/events/{given_up.event}"))


def test_an_event_that_is_routed_while_its_page_is_read_is_not_taken_for_one_without_deliveries(
    given_up: Sent, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its routing is read first: deliveries that were read before it could be none although it is routed."""
    read: list[str] = []

    def note(module: Any, name: str) -> None:
        real = getattr(module, name)

        async def noted(*args: Any, **how: Any) -> Any:
            read.append(name)
            return await real(*args, **how)

        monkeypatch.setattr(module, name, noted)

    note(events, "explain_event")
    note(events.inspect, "show_event")
    assert pages.page(f"/console/events/{given_up.event}").status == 200
    assert read == ["explain_event", "show_event"]


def test_an_operations_page_is_renewed_until_it_is_over(running: RunningSystem, pages: Pages) -> None:
    """At this rate the second of the two would wait for more than a minute."""
    one = sent(running)
    post(running.api, one.event_type)
    dead_letters(running, one.subscription, 2)
    wanted = {"kind": "requeue", "rate_per_second": 0.01, "filter": {"subscription_id": one.subscription}}
    path = f"/console/bulk-operations/{running.api.good('POST', '/v1/bulk-operations', wanted)['id']}"
    assert renews(pages.page(path))
    assert pages.post(f"{path}/stop").status == 303

    def ended() -> bool:
        """The first of the two may be on its way for a moment."""
        shown = pages.page(path)
        assert "Stopped" in shown.text
        return not renews(shown)

    wait_until(ended, "the page is renewed no more")
