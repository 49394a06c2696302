"""The portal in a real browser: a subscriber's first steps, its look, frames, the phone, and the axe rules.

With HOOKSAGA_SCREENSHOTS=docs/console the pictures of the documentation are made anew (make screenshots).
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.browser import needs_a_browser
from tests.console.endpoint import Application, Endpoint
from tests.console.test_browser import SCREENSHOTS, Visit, browser, endpoint, running
from tests.faults.promises import IN_FULL

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Page, ViewportSize

__all__ = ["browser", "endpoint", "running"]

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(600)]

DESKTOP: "ViewportSize" = {"width": 1200, "height": 860}
PHONE: "ViewportSize" = {"width": 390, "height": 844}
OUR_WORDS = re.compile(
    r"\b(hooksaga|sagas?|dead.?letter\w*|jobs?|subscri\w+|tenants?|requeue\w*|idempotency|backlog|lease\w*)\b|死信|訂閱|租戶",
    re.IGNORECASE,
)
"""What a subscriber never reads, except in a program and in the headers of a request."""


def portal_link(running: RunningSystem, tenant: str, **more: Any) -> str:
    wanted = {"tenant_id": tenant, "name": "Acme webhooks", "colour": "#0a6b4f", **more}
    return str(running.api.good("POST", "/v1/portal-links", wanted)["url"])


def test_a_subscribers_own_pages(browser: "Browser", running: RunningSystem, endpoint: Endpoint) -> None:
    """From a link to a delivered event, without anybody else's help; and nothing of anybody else's."""
    endpoint.fixed.set()
    visit = Visit(browser, running, viewport=DESKTOP)
    page = visit.go(portal_link(running, "acme"))
    assert page.get_by_role("banner").inner_text().startswith("Acme webhooks")
    header = "getComputedStyle(document.querySelector('header')).backgroundColor"
    assert page.evaluate(header) == "rgb(10, 107, 79)"
    page.get_by_role("link", name="Add your first endpoint").click()
    page.locator("#f-event_types").fill("invoice.paid")
    page.locator("#f-callback_url").fill(endpoint.url)
    page.get_by_role("button", name="Add").click()
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("The endpoint answered correctly").wait_for()
    visit.picture("portal")
    page.get_by_role("button", name="Replace the secret").click()
    assert page.locator("code.secret").inner_text().startswith("whsec_")
    page.get_by_role("button", name="Send a test event").click()
    page.get_by_text("Delivered", exact=True).wait_for()
    page.get_by_role("link", name="Deliveries").first.click()
    assert page.locator("tbody tr").count() == 1
    strange = subscribe(running, running.api, new_name("strange"), endpoint.url)["id"]
    for path in (
        f"/portal/subscriptions/{strange}",
        "/portal/deliveries/999999",
        "/portal/dead-letters/1",
        "/portal/keys",
    ):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 404, path
    assert page.goto("/console") is not None
    assert "/console/sign-in" in page.url
    visit.context.close()
    assert visit.faults == []


CATALOGUE = {
    "order.created": "A customer placed an order.",
    "order.paid": "The payment of an order arrived.",
    "invoice.sent": "An invoice was sent by e-mail.",
}


class Shop:
    """A tenant with endpoints in all states, deliveries that succeeded and failed, and a catalogue."""

    def __init__(self, running: RunningSystem, endpoint: Endpoint) -> None:
        self.tenant = "phone-shop"
        api = running.api.with_key(running.new_key(tenant_id=self.tenant))
        for name, description in CATALOGUE.items():
            entry = {
                "description": description,
                "sample": {"id": 1001, "total": 49.9},
                "schema": {"type": "object"},
            }
            entry["attributes"] = [{"name": "total", "pointer": "/total", "kind": "number"}]
            running.api.good("PUT", f"/v1/event-types/{name}", entry)
        endpoint.fixed.set()
        whole = {"description": "orders of the web shop", "filter": {"total": [{"numeric": [">", 0]}]}}
        self.healthy = int(subscribe(running, api, "order.created", endpoint.url, **whole)["id"])
        self.delivered = post(api, "order.created", b'{"id": 1001, "total": 49.9}')
        sent = "SELECT id FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Completed'"
        self.attempt = wait_until(lambda: running.rows(sent, self.healthy), "it is delivered")[0]["id"]
        dead = "https://127.0.0.1:1/hooks/order-payments/of-the-accounting-department"
        self.failing = int(subscribe(running, api, "order.paid", dead)["id"])
        self.failed, *_ = [post(api, "order.paid", b'{"id": %d, "total": 5}' % number) for number in range(3)]
        self.letter = dead_letters(running, self.failing, 3)[0]
        wanted = {"event_types": ["*"], "callback_url": "https://example.com/new"}
        self.unverified = int(api.good("POST", "/v1/subscriptions", wanted)["id"])

    def pages(self) -> tuple[str, ...]:
        return (
            "/subscriptions",
            "/subscriptions?type=none.such",
            "/subscriptions/new",
            f"/subscriptions/{self.healthy}",
            f"/subscriptions/{self.failing}",
            f"/subscriptions/{self.unverified}",
            f"/subscriptions/{self.healthy}/edit",
            "/deliveries",
            "/deliveries?outcome=completed&subscription=x",
            f"/deliveries/{self.attempt}",
            "/dead-letters",
            f"/dead-letters/{self.letter}",
            f"/events/{self.delivered}",
            f"/events/{self.failed}",
            "/event-types",
            "/event-types/order.created",
            f"/guide?endpoint={self.healthy}",
            "/search?q=1001",
            "/keys",
        )


EMPTY = ("/subscriptions", "/deliveries", "/dead-letters", "/guide")


@pytest.fixture(scope="module")
def shop(running: RunningSystem, endpoint: Endpoint) -> Shop:
    return Shop(running, endpoint)


def audit(page: "Page | Frame", path: str) -> None:
    """No serious finding of axe, no sideways scrolling, and none of our words."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]  # pyright: ignore[reportArgumentType]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
    text = page.evaluate("""() => {
        const copy = document.body.cloneNode(true);
        for (const code of copy.querySelectorAll("pre, dl.mono")) code.remove();
        return document.title + " " + copy.textContent;
    }""")
    assert OUR_WORDS.findall(text) == [], path


@pytest.fixture(scope="module")
def application() -> Iterator[Application]:
    made = Application()
    yield made
    made.stop()


def look_at(page: "Page", shown: "Page | Frame", path: str) -> None:
    """Look at a page in both schemes on a desktop and a phone; in `make test` in one scheme on each."""
    for scheme, size in product(("light", "dark"), (DESKTOP, PHONE)):
        if IN_FULL or (scheme == "light") == (size is DESKTOP):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            audit(shown, path)


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "zh-Hant"])
def test_every_page_passes_the_axe_rules(
    browser: "Browser", running: RunningSystem, shop: Shop, language: str
) -> None:
    visit = Visit(browser, running)
    assert shop.pages()
    for tenant, paths in ((shop.tenant, shop.pages()), (new_name("empty"), EMPTY)):
        visit.go(portal_link(running, tenant, language=language))
        for path in paths:
            visit.page.goto(f"/portal{path}")
            look_at(visit.page, visit.page, path)
            assert visit.page.locator("html").get_attribute("lang") == language
    visit.context.close()


@pytest.mark.long
@pytest.mark.parametrize("language", ["en", "zh-Hant"])
def test_every_page_passes_the_axe_rules_in_a_frame(
    browser: "Browser", running: RunningSystem, shop: Shop, application: Application, language: str
) -> None:
    visit = Visit(browser, running)
    more: dict[str, Any] = {"header": False, "embed_origin": application.origin, "language": language}
    assert shop.pages()
    for tenant, paths in ((shop.tenant, shop.pages()), (new_name("empty"), EMPTY)):
        application.framed = portal_link(running, tenant, **more)
        visit.page.goto(application.origin)
        visit.page.frame_locator("iframe").get_by_role("navigation").wait_for()
        frame = visit.page.frames[1]
        for path in paths:
            frame.goto(f"{visit.origin}/portal{path}")
            look_at(visit.page, frame, path)
            assert frame.locator("header").count() == 0
    visit.context.close()


OTHERS = product(("#000000", "#ffe600", "#d40000", "#7cc4ff"), ("light", "dark"))


@pytest.mark.parametrize(
    ("colour", "scheme"),
    [
        ("#ffffff", "light"),
        ("#ffffff", "dark"),
        *(pytest.param(*other, marks=pytest.mark.long) for other in OTHERS),
    ],
)
def test_any_colour_can_be_read(
    browser: "Browser", running: RunningSystem, shop: Shop, colour: str, scheme: str
) -> None:
    visit = Visit(browser, running, viewport=DESKTOP)
    visit.go(portal_link(running, shop.tenant, colour=colour, scheme=scheme, radius=0, font="Georgia, serif"))
    for path in ("/subscriptions", f"/subscriptions/{shop.failing}", "/dead-letters"):
        page = visit.go(f"/portal{path}")
        audit(page, path)
    button = page.locator("main button").first
    assert button.evaluate("one => getComputedStyle(one).borderRadius") == "0px"
    assert "Georgia" in page.evaluate("getComputedStyle(document.body).fontFamily")
    visit.context.close()


def test_on_a_phone_the_navigation_is_at_the_thumb(
    browser: "Browser", running: RunningSystem, shop: Shop
) -> None:
    visit = Visit(browser, running, viewport=PHONE, color_scheme="dark")
    page = visit.go(portal_link(running, shop.tenant))
    page = visit.go("/portal/deliveries")
    box = page.get_by_role("navigation").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] == PHONE["height"]
    for link in page.get_by_role("navigation").get_by_role("link").all():
        place = link.bounding_box()
        assert place is not None
        assert place["height"] >= 44
        assert place["width"] >= 44
    assert page.locator("#f-type").is_hidden(), "filters are folded"
    page.get_by_text("Filter", exact=True).click()
    assert page.locator("#f-type").is_visible()
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / "portal-phone.png")
    visit.context.close()


def test_times_are_in_the_visitors_zone(browser: "Browser", running: RunningSystem, shop: Shop) -> None:
    visit = Visit(browser, running, viewport=DESKTOP, timezone_id="Asia/Taipei", locale="de-DE")
    visit.go(portal_link(running, shop.tenant, language="zh-Hant"))
    page = visit.go(f"/portal/deliveries/{shop.attempt}")
    time = page.locator("time").first
    assert time.get_attribute("title", timeout=1000).endswith(" UTC")  # pyright: ignore[reportOptionalMemberAccess]
    shown = "one => one.textContent === new Intl.DateTimeFormat('zh-Hant', {dateStyle: 'medium', timeStyle: 'medium'})"
    assert time.evaluate(f"{shown}.format(new Date(one.dateTime))")
    assert "年" in time.inner_text()
    visit.context.close()


def test_a_wrong_form_is_explained_in_the_language_of_the_page(
    browser: "Browser", running: RunningSystem, shop: Shop
) -> None:
    """By the server: a browser would explain it in its own language."""
    visit = Visit(browser, running, viewport=DESKTOP, locale="de-DE")
    visit.go(portal_link(running, shop.tenant, language="zh-Hant"))
    page = visit.go("/portal/subscriptions/new")
    page.locator("#f-callback_url").fill("http://example.com/")
    page.locator("#f-event_types").fill("a.b")
    page.get_by_role("button", name=PORTAL_WORDS["Add"], exact=True).click()
    page.get_by_role("alert").wait_for()
    assert "位址: 必須以 https:// 開頭" in page.get_by_role("alert").inner_text()
    audit(page, "/subscriptions")
    visit.context.close()


def test_a_frame_shows_that_its_portal_has_ended(
    browser: "Browser", running: RunningSystem, application: Application
) -> None:
    visit = Visit(browser, running)
    application.framed = f"{visit.origin}/portal/enter?token=old"
    visit.page.goto(application.origin)
    visit.page.frame_locator("iframe").get_by_role("heading", name="This link has expired").wait_for()
    visit.context.close()
    assert visit.faults == []


@pytest.mark.parametrize("stated", [True, False])
def test_only_the_stated_origin_frames_the_portal(
    browser: "Browser", running: RunningSystem, application: Application, stated: bool
) -> None:
    """The application is another site, so the session's cookie is a third party's."""
    visit = Visit(browser, running)
    origin = application.origin if stated else "https://elsewhere.example"
    application.framed = portal_link(running, new_name("framed"), embed_origin=origin)
    visit.page.goto(application.origin)
    frame = visit.page.frame_locator("iframe")
    if stated:
        frame.get_by_role("link", name="Add an endpoint").click()
        frame.get_by_role("button", name="Add", exact=True).wait_for()
    else:
        refused = wait_until(lambda: visit.faults or visit.page.wait_for_timeout(50), "the browser says so")
        assert "frame-ancestors" in refused[0]
        assert frame.get_by_role("link", name="Add an endpoint").count() == 0
    visit.context.close()
