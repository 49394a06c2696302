"""A bad night, repaired through the console alone, in a real browser: six endpoints of three tenants fail in different
ways, and at the end each event has reached each endpoint of its tenant."""

import asyncio
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from hooksaga.local.tls import ensure_certificates
from tests.api.running_system import new_name, wait_until
from tests.api.seeding import post
from tests.console.browser import launched, needs_a_browser
from tests.console.test_browser import Visit
from tests.e2e.recorder import Recorder, each
from tests.e2e.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [needs_a_browser, pytest.mark.long, pytest.mark.timeout(300)]

BEFORE, MEANWHILE = 40, 30
"""Events of each tenant before anybody looks, and while the endpoints are repaired."""

CODES = ("http_404", "http_500", "timeout_total", "connection_refused", "tls_error", "http_410")
LATE = 120_000

UNDELIVERED = """
    SELECT e.webhook_id, s.id FROM events e
      JOIN subscriptions s ON s.tenant_id = e.tenant_id AND e.event_type = ANY (s.event_types)
     WHERE s.id = ANY (%s) AND NOT EXISTS (SELECT FROM webhook_delivery_sagas g
            WHERE g.event_id = e.id AND g.subscription_id = s.id AND g.status = 'Completed')"""
STANDING = """
    SELECT d.id FROM dead_letters d
     WHERE NOT EXISTS (SELECT FROM webhook_delivery_sagas g WHERE g.requeued_from = d.id)"""


@dataclass
class Endpoint:
    """One of the six. path: where its events should arrive in the end. good_url: set where the address is wrong."""

    id: int
    path: str
    good_url: str | None = None


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    return {"max_retry_limit": 2, "breaker_failures": 1000}


@pytest.fixture(scope="module")
def stranger() -> Iterator[Recorder]:
    """A receiver whose certificate nobody trusts."""
    with tempfile.TemporaryDirectory(prefix="hooksaga-stranger-") as folder:
        recorder = Recorder(ensure_certificates(Path(folder)))
        yield recorder
        recorder.close()


async def hang(_body: bytes) -> web.Response:
    await asyncio.sleep(30)
    return web.Response()


class Night:
    def __init__(self, world: World, stranger: Recorder) -> None:
        self.world = world
        self.tenants = {new_name(name): new_name("night") for name in ("shop", "bank", "post")}
        self.keys = {one: world.running.new_key(tenant_id=one) for one in self.tenants}
        shop, bank, office = self.tenants
        good = world.recorder.url
        self.not_found = self._subscribe(shop, f"{good}/missing", "/right", f"{good}/right")
        self.broken = self._subscribe(shop, f"{good}/broken", "/broken")
        self.hanging = self._subscribe(bank, f"{good}/hanging", "/hanging")
        self.refusing = self._subscribe(bank, "https://127.0.0.1:1/hook", "/moved", f"{good}/moved")
        self.untrusted = self._subscribe(office, f"{stranger.url}/tls", "/trusted", f"{good}/trusted")
        self.gone = self._subscribe(office, f"{good}/gone", "/gone")
        for path, answer in (("/missing", 404), ("/broken", 500), ("/hanging", hang), ("/gone", 410)):
            world.recorder.script(path, answer)
        for path in ("/right", "/moved", "/trusted"):
            self.answer_challenges(path)

    @property
    def endpoints(self) -> list[Endpoint]:
        return [self.not_found, self.broken, self.hanging, self.refusing, self.untrusted, self.gone]

    def _subscribe(self, tenant: str, url: str, path: str, good_url: str | None = None) -> Endpoint:
        wanted = {"event_type": self.tenants[tenant], "callback_url": url, "description": path}
        created = self.world.api.with_key(self.keys[tenant]).good("POST", "/v1/subscriptions", wanted)
        self.world.running.verify_by_hand(created["id"])
        return Endpoint(created["id"], path, good_url)

    def answer_challenges(self, path: str) -> None:
        """The receiver's team has repaired it."""
        self.world.recorder.receiver.scripts.pop(path, None)
        self.world.recorder.script(path, answer_well)

    def post(self, how_many: int) -> None:
        for tenant, event_type in self.tenants.items():
            api = self.world.api.with_key(self.keys[tenant])
            each(lambda n: post(api, event_type, b'{"n": %d}' % n), how_many)  # noqa: B023

    def undelivered(self) -> list[dict[str, object]]:
        return self.world.running.rows(UNDELIVERED, [one.id for one in self.endpoints])


def answer_well(body: bytes) -> web.Response:
    found = re.search(rb'"challenge": *("[^"]+")', body)
    return web.Response(
        body=b'{"challenge": %s}' % found[1] if found else b"", content_type="application/json"
    )


@pytest.fixture(scope="module")
def night(world: World, stranger: Recorder) -> Night:
    return Night(world, stranger)


def figure(page: "Page", words: str) -> str:
    return page.locator(".figures a", has_text=words).locator("b").inner_text()


def wait_for_figure(page: "Page", words: str, number: str) -> None:
    """The page renews itself."""
    page.wait_for_function(
        "([words, number]) => [...document.querySelectorAll('.figures a')]"
        ".some(one => one.innerText.includes(words) && one.querySelector('b').innerText === number)",
        arg=[words, number],
        timeout=LATE,
    )


def find_the_causes(visit: Visit, night: Night) -> None:
    """The page Now names the six codes and the six endpoints; the attempt of one shows the address and the answer."""
    page = visit.go("/console")
    for code in CODES:
        page.locator(f"#error-{code}").wait_for(timeout=LATE)
    for one in night.endpoints:
        page.locator(f"#endpoint-{one.id}").wait_for(timeout=LATE)
        assert one.path in page.locator(f"#endpoint-{one.id}").inner_text()
    page.locator("#error-http_404 a").first.click()
    page.locator("tbody tr").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_text("HTTP 404", exact=True).wait_for()
    assert "/missing" in page.locator("dl.facts").first.inner_text()


def correct_address(visit: Visit, one: Endpoint) -> None:
    assert one.good_url is not None
    page = visit.go(f"/console/subscriptions/{one.id}")
    page.get_by_role("link", name="Change").click()
    page.locator("#f-callback_url").fill(one.good_url)
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("The endpoint answered the challenge").wait_for()


def enable_and_backfill(visit: Visit, one: Endpoint) -> None:
    """The monitor has disabled it after a 410; every event since then passed it by."""
    page = visit.go(f"/console/subscriptions/{one.id}")
    page.get_by_text("Disabled automatically:").wait_for()
    page.get_by_role("button", name="Activate").click()
    told = page.get_by_text("events passed by while it was disabled.").inner_text()
    number = int(told.split()[0])
    assert number >= MEANWHILE
    page.get_by_role("button", name="Deliver these events").click()
    page.get_by_text(f"{number} of {number}", exact=True).wait_for(timeout=LATE)


def requeue_all(visit: Visit, night: Night) -> None:
    """First a dry run, then all that stand."""
    page = visit.go("/console")
    standing = int(figure(page, "dead letters that stand"))
    assert standing == len(night.world.running.rows(STANDING))
    page.locator(".figures a", has_text="dead letters that stand").click()
    assert page.locator("caption").inner_text().startswith(f"{standing:,} dead letters")
    page.get_by_role("link", name="Requeue all matching").click()
    page.get_by_label("Rate per second").fill("200")
    page.get_by_label("Reason").fill("the night of the six endpoints")
    page.get_by_role("button", name="Count").click()
    page.get_by_text(f"{standing} deliveries of 6 subscriptions match.").wait_for()
    assert len(night.world.running.rows(STANDING)) == standing, "counting sends nothing"
    page.get_by_role("button", name="Start").click()
    page.get_by_text(f"{standing} of {standing}", exact=True).wait_for(timeout=LATE)
    wait_for_delivered(page, standing)


def wait_for_delivered(page: "Page", number: int) -> None:
    page.wait_for_function(
        "number => document.querySelector('.figures b').innerText === number", arg=f"{number}", timeout=LATE
    )


def resend_one(visit: Visit, night: Night) -> None:
    """A customer lost one that had arrived."""
    lost = night.world.recorder.events("/broken")[-1].header("webhook-id")
    page = visit.go("/console")
    page.keyboard.press("/")
    page.keyboard.type(lost)
    page.keyboard.press("Enter")
    section = page.locator("section", has=page.get_by_text(f"saga {saga_of(night, lost)}", exact=True))
    before = arrivals(night, lost)
    section.get_by_role("button", name="Resend").click()
    page.get_by_text("resent from saga").first.wait_for()
    wait_until(lambda: arrivals(night, lost) == before + 1, "it arrives again")


def arrivals(night: Night, event_id: str) -> int:
    found = night.world.recorder.events("/broken")
    return sum(one.header("webhook-id") == event_id for one in found)


def saga_of(night: Night, event_id: str) -> int:
    query = (
        "SELECT max(g.id) AS id FROM webhook_delivery_sagas g JOIN events e ON e.id = g.event_id"
        " WHERE e.webhook_id = %s::uuid AND g.subscription_id = %s AND g.status = 'Completed'"
    )
    return int(night.world.running.rows(query, event_id.removeprefix("evt_"), night.broken.id)[0]["id"])


def test_an_operator_repairs_a_bad_night_through_the_console(world: World, night: Night) -> None:
    night.post(BEFORE)
    with launched() as browser:
        visit = Visit(browser, world.running, viewport={"width": 1280, "height": 900})
        visit.go(world.running.sign_in_link())
        find_the_causes(visit, night)

        page = visit.go(f"/console/subscriptions/{night.hanging.id}")
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("The subscription is paused.").wait_for()
        night.post(MEANWHILE)
        for one in (night.not_found, night.refusing, night.untrusted):
            correct_address(visit, one)
        for path in ("/broken", "/hanging", "/gone"):
            night.answer_challenges(path)
        page = visit.go(f"/console/subscriptions/{night.hanging.id}")
        page.get_by_role("button", name=re.compile("Resume and deliver [1-9]")).click()
        page.get_by_text("The subscription is resumed.").wait_for()
        enable_and_backfill(visit, night.gone)

        page = visit.go("/console")
        for words in ("waiting for a retry", "deliveries due", "in flight", "events not routed yet"):
            wait_for_figure(page, words, "0")
        requeue_all(visit, night)
        assert night.undelivered() == []
        resend_one(visit, night)

        page = visit.go("/console")
        for words in ("dead letters that stand", "waiting for a retry", "deliveries due"):
            wait_for_figure(page, words, "0")
        visit.context.close()
        assert visit.faults == []
    assert_each_event_reached_each_endpoint(night)
    world.assert_audit_finds_nothing()


def assert_each_event_reached_each_endpoint(night: Night) -> None:
    """By the database, and by what arrived."""
    assert night.undelivered() == []
    assert night.world.running.rows(STANDING) == []
    events = night.world.running.rows(
        "SELECT tenant_id, webhook_id FROM events WHERE event_type = ANY (%s)", [*night.tenants.values()]
    )
    assert len(events) == 3 * (BEFORE + MEANWHILE)
    owners = {
        row["id"]: row["tenant_id"]
        for row in night.world.running.rows("SELECT id, tenant_id FROM subscriptions")
    }
    for one in night.endpoints:
        arrived = {found.header("webhook-id") for found in night.world.recorder.events(one.path)}
        mine = {f"evt_{row['webhook_id'].hex}" for row in events if row["tenant_id"] == owners[one.id]}
        assert mine <= arrived, one.path
