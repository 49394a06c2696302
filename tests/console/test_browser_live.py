"""Pages that renew themselves, times, and keys, in a real browser: nothing that somebody does is lost."""

from typing import TYPE_CHECKING

import pytest

from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.browser import needs_a_browser
from tests.console.endpoint import Endpoint
from tests.console.test_browser import Visit, browser, endpoint, running, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["browser", "endpoint", "running", "visit"]

pytestmark = [needs_a_browser, pytest.mark.slow, pytest.mark.timeout(180)]

RENEWED = 20_000
EVENT_TYPE = new_name("live")


@pytest.fixture(scope="module")
def subscription(running: RunningSystem, endpoint: Endpoint) -> int:
    """With three dead letters."""
    endpoint.fixed.clear()
    made = int(subscribe(running, running.api, EVENT_TYPE, endpoint.url)["id"])
    for _ in range(3):
        post(running.api, EVENT_TYPE)
    dead_letters(running, made, 3)
    return made


def one_more(running: RunningSystem, subscription: int) -> int:
    """A new dead letter."""
    before = dead_letters(running, subscription, 1)
    post(running.api, EVENT_TYPE)
    return dead_letters(running, subscription, len(before) + 1)[0]


def test_a_list_renews_itself_and_takes_nothing_away(
    visit: Visit, running: RunningSystem, subscription: int
) -> None:
    page = visit.go(f"/console/dead-letters?subscription={subscription}")
    rows = page.locator("tbody tr").count()
    ticked, focused = page.locator("td.tick input").nth(1), page.locator("tbody a").nth(1)
    ticked.check()
    name = ticked.get_attribute("name")
    page.locator("#f-error").fill("half of a co")
    focused.focus()
    href = focused.get_attribute("href")
    letter = one_more(running, subscription)
    page.locator(f"#row-{letter}").wait_for(timeout=RENEWED)
    assert page.locator("tbody tr").count() == rows + 1
    assert page.locator(f'input[name="{name}"]').is_checked()
    assert page.locator("td.tick input:checked").count() == 1
    assert page.evaluate("document.activeElement.getAttribute('href')") == href
    assert page.locator("#f-error").input_value() == "half of a co"
    assert page.locator("caption").inner_text().startswith(f"{rows + 1} dead letters")
    page.get_by_label("Choose all on this page").check()
    assert page.locator("td.tick input:checked").count() == rows + 1


def test_a_hidden_page_asks_for_nothing_and_a_shown_one_at_once(
    visit: Visit, running: RunningSystem, subscription: int
) -> None:
    visit.page.clock.install()
    page = visit.go(f"/console/dead-letters?subscription={subscription}")
    asked = requests_of(page)
    hide(page, hidden=True)
    letter = one_more(running, subscription)
    page.clock.run_for(12_000)
    assert asked == []
    hide(page, hidden=False)
    page.locator(f"#row-{letter}").wait_for(timeout=4_000)


def requests_of(page: "Page") -> list[str]:
    """The requests from now on, without those of assets."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/assets/" not in request.url else None)
    return asked


def hide(page: "Page", *, hidden: bool) -> None:
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def test_what_is_selected_or_opened_stays(visit: Visit, running: RunningSystem, subscription: int) -> None:
    visit.page.clock.install()
    page = visit.go("/console")
    page.get_by_text("Charts as a table").click()
    before = page.locator("#live p.soft").first.inner_text()
    page.wait_for_function(
        "before => document.querySelector('#live p.soft').innerText !== before", arg=before, timeout=RENEWED
    )
    assert page.locator("details[open]").count() == 1
    page.locator("#live h1").select_text()
    asked = requests_of(page)
    before = page.locator("#live p.soft").first.inner_text()
    page.clock.run_for(12_000)
    assert asked == []
    assert page.evaluate("getSelection().toString()") == "Now"
    assert page.locator("#live p.soft").first.inner_text() == before


def test_an_ended_session_leads_to_the_sign_in(
    browser: "Browser", running: RunningSystem, subscription: int
) -> None:
    visit = Visit(browser, running)
    visit.go(running.sign_in_link())
    page = visit.go("/console/deliveries")
    visit.context.clear_cookies()
    page.get_by_label("API key").wait_for(timeout=RENEWED)
    assert "next=%2Fconsole%2Fdeliveries" in page.url
    visit.context.close()


@pytest.mark.parametrize(("language", "words"), [("en-GB", "ago"), ("zh-TW", "前")])
def test_times_are_relative_with_both_zones_on_hover(
    browser: "Browser", running: RunningSystem, subscription: int, language: str, words: str
) -> None:
    visit = Visit(browser, running, locale=language, timezone_id="Asia/Taipei")
    visit.go(running.sign_in_link())
    page = visit.go(f"/console/dead-letters?subscription={subscription}")
    time = page.locator("tbody time").first
    assert words in time.inner_text() or time.inner_text() in ("now", "現在")
    title = time.get_attribute("title") or ""
    stamp = (time.get_attribute("datetime") or "")[:19].replace("T", " ")
    assert f"{stamp} UTC" in title
    assert "(Asia/Taipei)" in title
    page.locator("tbody a").first.click()
    exact = page.locator("dl.facts time").first
    assert exact.inner_text() == stamp, "one thing's own page shows its time whole"
    assert words in (exact.get_attribute("title") or "") or "now" in (exact.get_attribute("title") or "")
    visit.context.close()


def test_keys_move_through_rows_and_explain_themselves(
    visit: Visit, running: RunningSystem, subscription: int
) -> None:
    page = visit.go(f"/console/dead-letters?subscription={subscription}")
    letters = dead_letters(running, subscription, 3)

    def row() -> str:
        return str(page.evaluate("document.activeElement.closest('tr')?.id ?? ''"))

    for key, place in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        assert row() == f"row-{letters[place]}"
    page.keyboard.press("x")
    assert page.locator("td.tick input:checked").count() == 1
    page.locator("#f-error").focus()
    page.keyboard.type("jk?x/")
    assert page.locator("#f-error").input_value() == "jk?x/"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys on the keyboard").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = row().removeprefix("row-")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/console/dead-letters/{chosen}")


@pytest.mark.parametrize(
    "path", ["/console", "/console/events", "/console/subscriptions", "/console/deliveries"]
)
def test_every_list_has_rows_for_the_keys(visit: Visit, subscription: int, path: str) -> None:
    page = visit.go(path)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('tbody tr a[href]')")


def test_what_a_button_copies_is_the_whole_text(
    browser: "Browser", running: RunningSystem, subscription: int
) -> None:
    visit = Visit(browser, running, permissions=["clipboard-read", "clipboard-write"])
    visit.go(running.sign_in_link())
    query = "SELECT min(id) AS id FROM webhook_delivery_jobs WHERE subscription_id = %s"
    page = visit.go(f"/console/deliveries/{running.rows(query, subscription)[0]['id']}")
    for name in ("sent-headers", "sent-body", "curl", "received-headers", "received-body"):
        button = page.locator(f'button[data-copy="{name}"]')
        button.click()
        page.wait_for_function("button => button.innerText === 'Copied'", arg=button.element_handle())
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator(f"#{name}").text_content(), name
        assert copied
    assert "curl --http1.1" in (page.locator("#curl").text_content() or "")
    visit.context.close()
    assert visit.faults == []
