"""examples/embed as a reader runs it: the server as a process, and its page in a real browser."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from tests.api.running_system import RunningSystem, wait_until
from tests.console.browser import needs_a_browser
from tests.console.test_browser import SCREENSHOTS, Visit, browser, endpoint, running
from tests.console.test_portal_browser import DESKTOP, Shop, shop
from tests.delivery.hostile_receiver import unused_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["browser", "endpoint", "running", "shop"]

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(180)]

SERVER = Path(__file__).resolve().parents[2] / "examples" / "embed" / "server.py"
FRAME = "#portal"


@pytest.fixture(scope="module")
def origin(running: RunningSystem, shop: Shop) -> Iterator[str]:
    port = unused_port()
    env = {
        **os.environ,
        "HOOKSAGA_API_URL": f"http://127.0.0.1:{running.port}",
        "HOOKSAGA_API_KEY": running.key,
    }
    command = [sys.executable, str(SERVER), "--port", str(port), "--tenant", shop.tenant]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == f"open http://localhost:{port}\n"
    yield f"http://localhost:{port}"
    process.terminate()
    process.communicate(timeout=30)


def test_the_frame_is_as_high_as_its_page_and_speaks_its_language(
    browser: "Browser", running: RunningSystem, origin: str
) -> None:
    visit = Visit(browser, running, viewport=DESKTOP)
    page = visit.page
    page.goto(origin)
    frame = page.frame_locator(FRAME)
    frame.get_by_role("heading", name="Endpoints").wait_for()
    assert frame.locator("header").count() == 0
    height = "document.querySelector('#portal').getBoundingClientRect().height"

    def is_whole(shown: int) -> bool:
        inner = page.frames[1].evaluate("document.body.getBoundingClientRect().height")
        return abs(page.evaluate(height) - inner) <= 3 and abs(inner - shown) > 20

    wait_until(lambda: is_whole(0), "the frame has the height of its page")
    if SCREENSHOTS:
        page.screenshot(path=Path(SCREENSHOTS) / "portal-embedded.png")
    before = page.evaluate(height)
    frame.get_by_role("link", name="Guide").click()
    frame.get_by_role("heading", name="How to receive events").wait_for()
    wait_until(lambda: is_whole(before), "it grows with a longer page")
    page.get_by_label("Language").select_option("zh-TW")
    frame.get_by_role("heading", name=PORTAL_WORDS["Endpoints"]).wait_for()
    visit.context.close()
    assert visit.faults == []


def test_the_height_is_told_to_the_origin_of_the_link_only(
    browser: "Browser", running: RunningSystem, origin: str
) -> None:
    """The page names exactly one target, so the browser gives the message to no other window."""
    visit = Visit(browser, running, viewport=DESKTOP)
    targets: list[str] = []
    visit.page.expose_function("noteTarget", lambda text: targets.append(text))
    visit.page.add_init_script(
        "addEventListener('message', (event) => { if (event.data?.type) noteTarget(event.origin + ' ' + origin) })"
    )
    visit.page.goto(origin)
    wait_until(lambda: targets or visit.page.wait_for_timeout(50), "a message")
    assert set(targets) == {f"http://127.0.0.1:{running.port} {origin}"}
    body = visit.page.frames[1].locator("body")
    assert body.get_attribute("data-frame-origin") == origin
    visit.context.close()
