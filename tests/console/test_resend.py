"""Resend and retry now: one click where the delivery is seen, and many at once by a form."""

from datetime import UTC, datetime

import pytest

from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, portal
from tests.console.test_subscription_flow import click

REFUSING = "https://127.0.0.1:1/hook"


@pytest.fixture(scope="module")
def tenant() -> str:
    return new_name("tenant")


@pytest.fixture(params=["console", "portal"])
def place(request: pytest.FixtureRequest, running: RunningSystem, tenant: str) -> Pages:
    """A browser of an operator, and one of a subscriber."""
    key = running.new_key(tenant_id=tenant)
    if request.param == "console":
        return Pages(running.port).signed_in(key)
    url = str(running.api.with_key(key).good("POST", "/v1/portal-links", {})["url"])
    return portal(running.port, url[len(f"http://127.0.0.1:{running.port}") :])


class Sent:
    """An event to a subscription whose endpoint refuses every connection."""

    def __init__(self, running: RunningSystem, tenant: str, **more: object) -> None:
        self.running, self.api = running, running.api.with_key(running.new_key(tenant_id=tenant))
        one = subscribe(running, self.api, new_name("again"), REFUSING, **more)
        self.subscription, self.event_type = int(one["id"]), str(one["event_type"])
        self.event = post(self.api, self.event_type)

    def attempts(self) -> int:
        query = "SELECT count(*) AS made FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Failed'"
        return int(self.running.rows(query, self.subscription)[0]["made"])

    def wait_for(self, attempts: int) -> None:
        wait_until(lambda: self.attempts() == attempts, f"{attempts} attempts")


def test_an_ended_delivery_is_resent_from_the_page_of_its_event(
    running: RunningSystem, tenant: str, place: Pages
) -> None:
    sent = Sent(running, tenant)
    dead_letters(running, sent.subscription, 1)
    page = f"{place.base}/events/{sent.event}"
    button, told = place.words("Resend", "Send again"), place.words("requeued from dead letter", "sent again")
    assert told in click(place, place.page(page), button).text
    sent.wait_for(2)


def test_an_ended_delivery_is_resent_from_the_page_of_its_attempt(
    running: RunningSystem, tenant: str, place: Pages
) -> None:
    sent = Sent(running, tenant)
    dead_letters(running, sent.subscription, 1)
    query = "SELECT max(id) AS id FROM webhook_delivery_jobs WHERE subscription_id = %s"
    attempt = running.rows(query, sent.subscription)[0]["id"]
    click(
        place,
        place.page(f"{place.base}/deliveries/{attempt}"),
        place.words("Resend this delivery", "Send again"),
    )
    sent.wait_for(2)


def test_a_waiting_delivery_is_retried_from_the_page_of_its_event(
    running: RunningSystem, tenant: str, place: Pages
) -> None:
    sent = Sent(running, tenant, max_retry_limit=5, base_delay_seconds=3600)
    sent.wait_for(1)
    page = f"{place.base}/events/{sent.event}"
    wait_until(lambda: "Retry now" in place.page(page).text, "it waits for its retry")
    click(place, place.page(page), "Retry now")
    sent.wait_for(2)


def test_all_of_a_subscription_are_retried_from_its_page(
    running: RunningSystem, tenant: str, place: Pages
) -> None:
    sent = Sent(running, tenant, max_retry_limit=5, base_delay_seconds=3600)
    sent.wait_for(1)
    page = f"{place.base}/subscriptions/{sent.subscription}"
    wait_until(lambda: "Retry now" in place.page(page).text, "it waits for its retry")
    shown = click(place, place.page(page), "Retry now")
    told = "What waited for a retry is sent now."
    assert place.words("The deliveries that waited for a retry are tried now.", told) in shown.text
    sent.wait_for(2)


def test_many_are_counted_and_then_resent(running: RunningSystem, pages: Pages) -> None:
    sent = Sent(running, new_name("tenant"))
    dead_letters(running, sent.subscription, 1)
    listed = pages.page(f"/console/deliveries?subscription={sent.subscription}")
    assert f"/console/bulk-operations/new?kind=resend&amp;subscription={sent.subscription}" in listed.body
    given = {"kind": "resend", "subscription": str(sent.subscription), "rate": "50"}
    missing = pages.post("/console/bulk-operations", **given, step="count")
    assert (missing.status, "ended_after is required" in missing.text) == (422, True)
    given["after"] = f"{datetime.now(UTC):%Y-%m-%d}T00:00Z"
    counted = pages.post("/console/bulk-operations", **given, step="count")
    assert "1 deliveries of 1 subscriptions match." in counted.text
    started = pages.post("/console/bulk-operations", **given, step="start")
    assert started.status == 303
    sent.wait_for(2)
    assert "resend" in pages.page(started.headers["location"]).text
