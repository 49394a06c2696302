"""Every page of the console in a real browser: light and dark, English and Chinese, on a desktop and on a phone.

Each fits its window, has no fault of the axe rules, and logs no error. With HOOKSAGA_LOOKS set to a folder, each
picture is stored there (make screenshots LOOKS=folder).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.running_system import RunningSystem, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.api.test_endpoint_health_api import disable
from tests.console.browser import needs_a_browser
from tests.console.endpoint import Endpoint
from tests.console.test_browser import SCREENSHOTS, Visit, browser, endpoint, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "endpoint", "running"]

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(400)]

LOOKS = os.environ.get("HOOKSAGA_LOOKS")
SIZES = {"desktop": (1200, 860), "phone": (390, 860)}
PICTURED = ("delivery", "keys", "now", "open-work", "portal-links", "subscriptions")
"""Pages that docs/console.md shows."""

REFUSING = "https://127.0.0.1:1/hook"
ENTRY = {
    "description": "A customer placed an order.",
    "schema": {"type": "object", "required": ["order"]},
    "sample": {"order": 1001, "items": [{"sku": "A-7", "price": 12.5}]},
    "attributes": [{"name": "order", "pointer": "/order", "kind": "number"}],
}


@dataclass(frozen=True)
class Scene:
    """Something of each kind, by its id."""

    event: str
    attempt: int
    failing: int
    disabled: int
    dead_letter: int
    operation: int

    def pages(self) -> dict[str, str]:
        """Each page with content, by the name of its picture."""
        passed_by = "done=switched_on&missed=530&dead=12&since=2026-01-31T12:00Z&until=2026-01-31T14:00Z"
        return {
            "now": "",
            "now-week": "?range=7d",
            "open-work": "/open?state=waiting+for+a+retry",
            "events": "/events",
            "event": f"/events/{self.event}",
            "deliveries": "/deliveries",
            "delivery": f"/deliveries/{self.attempt}",
            "subscriptions": "/subscriptions",
            "subscription": f"/subscriptions/{self.failing}",
            "subscription-disabled": f"/subscriptions/{self.disabled}",
            "subscription-passed-by": f"/subscriptions/{self.failing}?{passed_by}&failing_since=2026-01-31T10:00Z",
            "subscription-new": "/subscriptions/new",
            "subscription-edit": f"/subscriptions/{self.failing}/edit",
            "event-types": "/event-types",
            "event-type": "/event-types/shop.order",
            "dead-letters": "/dead-letters",
            "dead-letter": f"/dead-letters/{self.dead_letter}",
            "bulk-operations": "/bulk-operations",
            "bulk-operation": f"/bulk-operations/{self.operation}",
            "bulk-new": "/bulk-operations/new",
            "bulk-resend-new": "/bulk-operations/new?kind=resend",
            "erasures": "/erasures",
            "portal-links": "/portal-links",
            "keys": "/keys",
            "search": "/search?q=ORD-1001",
            "search-nothing": "/search?q=none",
            "wrong-filter": "/deliveries?subscription=x1&after=soon&type=shop.order",
            "no-page": "/no-such-page",
        }


@pytest.fixture(scope="module")
def scene(running: RunningSystem, endpoint: Endpoint) -> Scene:
    endpoint.fixed.clear()
    api = running.api
    api.good("PUT", "/v1/event-types/shop.order", ENTRY)
    fails = subscribe(running, api, "shop.order", endpoint.url, description="orders of the web shop")["id"]
    waits = {"max_retry_limit": 5, "base_delay_seconds": 3600, "description": "warehouse"}
    subscribe(running, api, "shop.order", REFUSING, **waits)
    off = subscribe(running, api, "shop.invoice", REFUSING, description="the old accounting")["id"]
    disable(running, off)
    events = [
        post(api, "shop.order", b'{"order": %d, "items": [{"sku": "A-7"}]}' % n) for n in range(1001, 1007)
    ]
    for _ in range(2):
        keyed = {"event_type": "shop.order", "payload": {"order": 7}, "attributes": {"order_id": "ORD-1001"}}
        assert api.post("/v1/events", keyed).status == 202
    letters = dead_letters(running, fails, 8)
    running.run(
        "UPDATE subscription_health SET first_failure_at = now() - interval '20 minutes', consecutive_failures = 16,"
        " last_error_code = 'http_503' WHERE subscription_id = %s",
        fails,
    )
    endpoint.fixed.set()
    wanted = {"kind": "requeue", "filter": {"subscription_id": fails}, "reason": "the shop is back"}
    operation = api.good("POST", "/v1/bulk-operations", {**wanted, "rate_per_second": 0.1})["id"]
    api.good("POST", f"/v1/bulk-operations/{operation}/pause")
    api.post("/v1/erasures", {"event_id": post(api, "shop.secret"), "reason": "request 7"})
    query = "SELECT id FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Failed' ORDER BY id LIMIT 1"
    attempt = wait_until(lambda: running.rows(query, fails), "an attempt")[0]["id"]
    return Scene(events[0], attempt, fails, off, letters[-1], operation)


@pytest.fixture(
    params=[
        pytest.param(look, id="-".join(look)) for look in product(("light", "dark"), ("en", "zh-TW"), SIZES)
    ]
)
def look(
    request: pytest.FixtureRequest, browser: "Browser", running: RunningSystem
) -> Iterator[tuple[Visit, str]]:
    scheme, language, size = request.param
    width, height = SIZES[size]
    visit = Visit(
        browser, running, color_scheme=scheme, locale=language, viewport={"width": width, "height": height}
    )
    yield visit, f"{scheme}-{language}-{size}"
    visit.context.close()
    assert visit.faults == []


def faults_of(page: "Page") -> list[tuple[str, str]]:
    """What the axe rules find, and whether something is wider than the window."""
    from axe_playwright_python.sync_playwright import Axe

    found = [(one["id"], one["nodes"][0]["html"]) for one in Axe().run(page).response["violations"]]
    if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
        found.append(("too-wide", page.url))
    return found


@pytest.mark.long
def test_every_page_is_sound(look: tuple[Visit, str], running: RunningSystem, scene: Scene) -> None:
    visit, name = look
    wrong: dict[str, list[tuple[str, str]]] = {}

    def check(picture: str) -> None:
        if faults := faults_of(visit.page):
            wrong[picture] = faults
        if LOOKS:
            visit.page.screenshot(path=Path(LOOKS) / f"{picture}-{name}.png", full_page=True)
        if SCREENSHOTS and name == "light-en-desktop" and picture in PICTURED:
            visit.picture(picture)

    visit.page.goto("/console/sign-in")
    check("sign-in")
    visit.page.goto(running.sign_in_link())
    for picture, path in scene.pages().items():
        visit.page.goto(f"/console{path}")
        visit.page.locator("h1").wait_for()
        check(picture)
    visit.page.keyboard.press("?")
    visit.page.get_by_role("dialog").wait_for()
    check("keys-help")
    assert wrong == {}


def test_every_page_of_the_console_is_in_the_scene(scene: Scene) -> None:
    """A page that somebody adds is looked at too."""
    from starlette.routing import Route

    from hooksaga.console.routes import CONSOLE_ROUTES

    looked_at = [path.partition("?")[0].split("/") for path in scene.pages().values()]
    assert len(CONSOLE_ROUTES) > 50
    for route in CONSOLE_ROUTES:
        assert isinstance(route, Route)
        if (
            "GET" not in (route.methods or ())
            or "assets" in route.path
            or route.path.endswith(("language", "sign-in"))
        ):
            continue
        wanted = route.path.removeprefix("/console").split("/")
        assert any(
            len(one) == len(wanted)
            and all(part == want or "{" in want for part, want in zip(one, wanted, strict=True))
            for one in looked_at
        ), route.path
