"""Search and lists in a real browser: the box, the key /, rows that are ticked, faults beside fields, a secret once."""

import json
from typing import TYPE_CHECKING

import pytest

from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, subscribe
from tests.console.browser import needs_a_browser
from tests.console.endpoint import Endpoint
from tests.console.test_browser import Visit, browser, endpoint, running, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "endpoint", "running", "visit"]

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(180)]

ORDER = new_name("ORD")


@pytest.fixture(scope="module")
def subscription(running: RunningSystem, endpoint: Endpoint) -> int:
    """Of the tenant `shop`, with three dead letters: two of one order, and one that has its number as key."""
    endpoint.fixed.clear()
    api = running.api.with_key(running.new_key(tenant_id="shop"))
    event_type = new_name("order.paid")
    made = int(subscribe(running, api, event_type, endpoint.url)["id"])
    for number in range(3):
        content = {"event_type": event_type, "payload": {"n": number}}
        content |= {"attributes": {"order_id": ORDER, "n": number}} if number else {}
        keys = [] if number else [("idempotency-key", ORDER)]
        assert api.post_event(json.dumps(content).encode(), *keys).status == 202
    dead_letters(running, made, 3)
    return made


def test_the_box_leads_to_a_list_and_to_the_one_page(visit: Visit, subscription: int) -> None:
    page = visit.go("/console")
    page.keyboard.press("/")
    page.keyboard.type(ORDER)
    page.keyboard.press("Enter")
    page.locator("tbody tr").nth(2).wait_for()
    visit.picture("search")
    short = page.locator("tbody a.mono").first.inner_text()
    page.keyboard.press("/")
    page.keyboard.type(short)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Timeline").wait_for()
    page.locator("#search").fill("nothing-has-this-name")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing matches nothing-has-this-name.").wait_for()
    visit.picture("search-nothing")


def test_ticked_dead_letters_are_requeued_and_a_reload_repeats_nothing(
    visit: Visit, running: RunningSystem, subscription: int
) -> None:
    page = visit.go(f"/console/dead-letters?subscription={subscription}&state=standing")
    visit.picture("dead-letters-ticks")
    page.get_by_label("Choose all on this page").check()
    page.locator("td.tick input").nth(2).uncheck()
    page.get_by_role("button", name="Requeue the chosen ones").click()
    page.get_by_text("All 2 were started.").wait_for()
    assert f"subscription={subscription}" in page.url
    visit.picture("dead-letters-started")
    query = "SELECT count(*) AS n FROM webhook_delivery_sagas WHERE subscription_id = %s"
    before = running.rows(query, subscription)[0]["n"]
    page.reload()
    page.get_by_text("All 2 were started.").wait_for()
    assert running.rows(query, subscription)[0]["n"] == before


def test_ticked_deliveries_are_resent_without_a_script(
    browser: "Browser", running: RunningSystem, subscription: int
) -> None:
    visit = Visit(browser, running, java_script_enabled=False, viewport={"width": 1200, "height": 860})
    visit.go(running.sign_in_link())
    page = visit.go(f"/console/deliveries?subscription={subscription}")
    assert not page.get_by_label("Choose all on this page").is_visible()
    page.locator("td.tick input").last.check()
    visit.picture("deliveries-ticks")
    page.get_by_role("button", name="Resend the chosen ones").click()
    page.get_by_role("status").wait_for()
    assert "chosen=1&started=1" in page.url
    visit.context.close()


@pytest.mark.parametrize("language", ["en", "zh-Hant"])
def test_a_wrong_filter_is_told_beside_its_field(
    browser: "Browser", running: RunningSystem, language: str
) -> None:
    visit = Visit(browser, running, locale=language, viewport={"width": 1200, "height": 860})
    visit.go(running.sign_in_link())
    answer = visit.page.goto(
        "/console/events?type=order.paid&attribute=order&status=waiting&after=2026-01-31T12:00"
    )
    assert answer is not None
    assert answer.status == 422
    field = visit.page.locator("#f-attribute")
    assert field.input_value() == "order"
    assert field.evaluate(
        "element => document.getElementById(element.getAttribute('aria-describedby')).innerText"
    )
    assert visit.page.locator("#f-after").input_value().startswith("2026-01-31T12:00")
    assert visit.page.locator("#f-status").input_value() == "waiting"
    visit.picture(f"wrong-filter-{language}")
    visit.context.close()


def test_a_list_of_events_by_attribute_and_its_files(visit: Visit, subscription: int) -> None:
    page = visit.go(f"/console/events?attribute=order_id:{ORDER}&status=dead&tenant=shop")
    assert page.locator("tbody tr").count() >= 1
    visit.picture("events-filtered")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "events.csv"


def test_a_secret_is_shown_once(visit: Visit) -> None:
    page = visit.go("/console/subscriptions/new")
    page.get_by_label("Event types").fill(new_name("once"))
    page.locator("#f-callback_url").fill("https://127.0.0.1:1/hook")
    page.get_by_role("button", name="Create").click()
    page.locator("code.secret").wait_for()
    visit.picture("secret-once")
    page.reload()
    page.get_by_role("heading", level=1).wait_for()
    assert page.locator("code.secret").count() == 0
