"""The pages in a real browser: a bad night fixed, hurting content, and the axe rules.

With HOOKSAGA_SCREENSHOTS=docs/console the pictures of the documentation are made anew (make screenshots).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post, subscribe
from tests.console.browser import launched, needs_a_browser
from tests.console.endpoint import HURTING, Endpoint

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(180)]

SCREENSHOTS = os.environ.get("HOOKSAGA_SCREENSHOTS")
SECONDS = 15_000


@pytest.fixture(scope="module")
def running(module_database: str, folder: Path) -> Iterator[RunningSystem]:
    ca_file = ensure_certificates(folder).ca
    system = RunningSystem(
        folder,
        database_url=module_database,
        max_retry_limit=2,
        base_delay_seconds=0.1,
        breaker_failures=1000,
        ca_file=ca_file,
    )
    yield system
    system.stop()


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[Endpoint]:
    made = Endpoint(ensure_certificates(folder))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with launched() as made:
        yield made


class Visit:
    """One browser window. Whatever a page logs as an error, or the policy refuses, fails the test."""

    def __init__(self, browser: "Browser", running: RunningSystem, **options: Any) -> None:
        self.origin = f"http://127.0.0.1:{running.port}"
        self.context: BrowserContext = browser.new_context(base_url=self.origin, **options)
        self.context.set_default_timeout(SECONDS)
        self.page: Page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self._note(said.type, said.text))

    def _note(self, kind: str, text: str) -> None:
        if kind == "error" and "status of 4" not in text:
            self.faults.append(text)

    def go(self, path: str) -> "Page":
        answer = self.page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        return self.page

    def picture(self, name: str) -> None:
        if SCREENSHOTS:
            self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")


@pytest.fixture
def visit(browser: "Browser", running: RunningSystem) -> Iterator[Visit]:
    """Signed in by the link that works once, as `hooksaga up` prints it."""
    made = Visit(browser, running, viewport={"width": 1200, "height": 860})
    made.go(running.sign_in_link())
    yield made
    made.context.close()
    assert made.faults == []


def test_signing_in_with_a_key_and_out(browser: "Browser", running: RunningSystem) -> None:
    visit = Visit(browser, running, viewport={"width": 1200, "height": 860})
    page = visit.go("/console/deliveries")
    assert "/console/sign-in" in page.url
    page.get_by_label("API key").fill("hs_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    visit.picture("sign-in")
    page.get_by_label("API key").fill(running.key)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key").wait_for()
    assert visit.context.cookies() == []
    visit.context.close()


def test_the_bad_night_of_a_dead_endpoint(visit: Visit, running: RunningSystem, endpoint: Endpoint) -> None:
    """Subscribed, verified, dead, found, fixed and requeued: all from the pages."""
    endpoint.fixed.clear()
    event_type = new_name("order.created") if not SCREENSHOTS else "order.created"
    page = visit.go("/console/subscriptions/new")
    page.get_by_label("Event types").fill(event_type)
    page.locator("#f-callback_url").fill(endpoint.url)
    page.get_by_label("Description").fill("orders of the web shop")
    page.get_by_role("button", name="Create").click()
    assert page.locator("code.secret").inner_text().startswith("whsec_")
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("The endpoint answered the challenge").wait_for()
    subscription = int(page.url.split("/")[-1].partition("?")[0])
    for number in range(12):
        post(running.api, event_type, b'{"order": %d}' % number)
    dead = "SELECT count(*) AS dead FROM dead_letters WHERE subscription_id = %s"
    wait_until(lambda: running.rows(dead, subscription)[0]["dead"] == 12, "twelve dead letters")
    visit.go(f"/console/subscriptions/{subscription}")
    visit.picture("subscription")
    page.get_by_role("link", name="Dead letters").last.click()
    page.locator("tbody tr").nth(11).wait_for()
    visit.picture("dead-letters")
    endpoint.fixed.set()
    page.get_by_role("link", name="Requeue all matching").click()
    page.get_by_role("button", name="Count").click()
    page.get_by_text("12 deliveries of 1 subscriptions match.").wait_for()
    visit.picture("bulk-requeue")
    page.get_by_label("Rate per second").fill("1")
    page.get_by_label("Reason").fill("the endpoint is fixed")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Rate per second").fill("100")
    page.get_by_role("button", name="Change").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("12 of 12").wait_for()
    visit.picture("bulk-operation")
    delivered = (
        "SELECT count(*) AS ok FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Completed'"
    )
    wait_until(lambda: running.rows(delivered, subscription)[0]["ok"] == 12, "all are delivered")
    visit.go("/console/deliveries")
    visit.picture("deliveries")
    visit.go(f"/console/events?type={event_type}")
    visit.picture("events")
    page.locator("tbody a.mono").first.click()
    page.get_by_text("Delivered", exact=True).wait_for()
    visit.picture("event")


def test_hurting_content_is_only_text(visit: Visit, running: RunningSystem, endpoint: Endpoint) -> None:
    """The answer's body, the address, the description, the headers' names and the payload, on every page that shows
    them. Event types and tenants cannot hurt: the database takes letters only."""
    endpoint.fixed.clear()
    event_type = new_name("plain")
    running.api.good("PUT", f"/v1/event-types/{event_type}", {"description": HURTING, "sample": HURTING})
    more = {"description": HURTING, "headers": {"x-shop": "<script>document.title='hurt'</script>"}}
    url = f"{endpoint.url}?q=<script>document.title='hurt'</script>"
    subscription = subscribe(running, running.api, event_type, url, **more)["id"]
    event = post(running.api, event_type, b'{"text": "</pre><script>document.title=\'hurt\'</script>"}')
    query = "SELECT id, saga_id FROM dead_letters WHERE subscription_id = %s"
    letter = wait_until(lambda: running.rows(query, subscription), "it is given up")[0]
    job = running.rows("SELECT id FROM webhook_delivery_jobs WHERE saga_id = %s", letter["saga_id"])[0]["id"]
    for path in (
        f"/console/events/{event}",
        f"/console/deliveries/{job}",
        f"/console/dead-letters/{letter['id']}",
        f"/console/subscriptions/{subscription}",
        f"/console/subscriptions/{subscription}/edit",
        "/console/subscriptions",
        "/console/event-types",
        f"/console/event-types/{event_type}",
        "/console",
    ):
        page = visit.go(path)
        assert page.locator("img[src=x]").count() == 0
        assert page.title() != "hurt"
    page = visit.go(f"/console/deliveries/{job}")
    assert page.locator("pre").last.inner_text() == HURTING


def test_reading_works_without_javascript(browser: "Browser", running: RunningSystem) -> None:
    visit = Visit(browser, running, java_script_enabled=False)
    page = visit.go(running.sign_in_link())
    for name in ("Events", "Subscriptions", "Deliveries", "Dead letters", "Bulk operations", "Keys"):
        page.get_by_role("link", name=name, exact=True).first.click()
        assert page.get_by_role("heading", level=1).inner_text() == name
    visit.context.close()


def test_by_keyboard_alone(visit: Visit) -> None:
    """The first stop leads past the navigation, and every stop can be seen."""
    page = visit.go("/console/events")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "type"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.type("a/b")
    assert page.evaluate("document.activeElement.value") == "a/b", "whoever types a / stays in the field"
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    assert page.evaluate("[document.activeElement.id, document.activeElement.value]") == ["search", ""]
    page.keyboard.type("evt_" + "0" * 32)
    page.keyboard.press("Enter")
    page.get_by_text("Nothing matches evt_").wait_for()


def test_tables_are_cards_on_a_phone(browser: "Browser", running: RunningSystem) -> None:
    visit = Visit(browser, running, viewport={"width": 390, "height": 860}, color_scheme="dark")
    visit.go(running.sign_in_link())
    for path in (
        "",
        "/events",
        "/deliveries",
        "/subscriptions",
        "/dead-letters",
        "/keys",
        "/bulk-operations",
    ):
        page = visit.go(f"/console{path}")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
    visit.go("/console")
    if SCREENSHOTS:
        visit.page.screenshot(path=Path(SCREENSHOTS) / "phone.png")
    visit.context.close()
