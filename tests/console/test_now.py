"""The page Now: each figure is the number of rows that its link shows, whatever the range."""

import html
import re
from datetime import timedelta
from typing import LiteralString

import pytest

from hooksaga.core import counts
from hooksaga.operations import open_work
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, Shown

REFUSING = "https://127.0.0.1:1/hook"
FIGURE = re.compile(r'<a href="([^"]*)"><b>([^<]*)</b><span>([^<]*)</span></a>')
CAPTION = re.compile(r"<caption>(\S+) (?:finished attempts|dead letters|of this state)")


def figures(shown: Shown) -> dict[str, tuple[str, str]]:
    """Number and link by the words below the number."""
    return {words: (number, html.unescape(href)) for href, number, words in FIGURE.findall(shown.body)}


def listed(pages: Pages, href: str) -> tuple[str, int]:
    """The number that a list says, and how many rows it has."""
    shown = pages.page(href)
    found = CAPTION.search(shown.body)
    return (found[1] if found else "0"), shown.body.count('<tr id="row-')


def rewrite(running: RunningSystem, statement: LiteralString, *params: object) -> None:
    """Change rows that never change otherwise."""
    running.run("SET session_replication_role = replica")
    running.run(statement, *params)
    running.run("SET session_replication_role = DEFAULT")


@pytest.fixture(scope="module")
def night(running: RunningSystem) -> int:
    """Four dead letters, one of them requeued in vain and one canceled; a retry in an hour; three kinds of errors."""
    dead_type, waiting_type = new_name("now.dead"), new_name("now.waits")
    dead = subscribe(running, running.api, dead_type, REFUSING, description="the shop's orders")["id"]
    waits = subscribe(
        running, running.api, waiting_type, REFUSING, max_retry_limit=5, base_delay_seconds=3600
    )["id"]
    for _ in range(3):
        post(running.api, dead_type)
    first = dead_letters(running, dead, 3)[-1]
    running.api.good("POST", f"/v1/dead-letters/{first}/requeue")
    last = dead_letters(running, dead, 4)[0]
    rewrite(running, "UPDATE dead_letters SET final_error_code = 'canceled' WHERE id = %s", last)
    post(running.api, waiting_type)
    query = "SELECT 1 FROM webhook_delivery_sagas WHERE subscription_id = %s AND status = 'PendingRetry'"
    wait_until(lambda: running.rows(query, waits), "it waits for its retry")
    rename = (
        "UPDATE webhook_delivery_jobs SET error_code = 'http_503', response_status = 503 WHERE id = "
        "(SELECT min(id) FROM webhook_delivery_jobs WHERE subscription_id = %s)"
    )
    rewrite(running, rename, dead)
    running.run(
        "UPDATE subscription_health SET first_failure_at = now() - interval '1 hour', consecutive_failures = 4,"
        " last_error_code = 'connection_refused' WHERE subscription_id = %s",
        dead,
    )
    return int(dead)


def age_all(running: RunningSystem, age: timedelta) -> None:
    """Move the ends of all attempts."""
    rewrite(
        running,
        "UPDATE webhook_delivery_jobs SET finished_at = now() - %s WHERE finished_at IS NOT NULL",
        age,
    )


def test_each_figure_counts_what_its_link_lists(running: RunningSystem, night: int, pages: Pages) -> None:
    age_all(running, timedelta(seconds=20))
    shown = figures(pages.page("/console"))
    for words in (
        "failed attempts in the last 60 seconds",
        "waiting for a retry",
        "dead letters that stand",
        "deliveries due",
        "in flight",
        "events not routed yet",
    ):
        number, href = shown[words]
        assert listed(pages, href) == (number, int(number)), words
    assert shown["waiting for a retry"][0] == "1"
    assert shown["failed attempts in the last 60 seconds"][0] == "5"
    assert shown["dead letters that stand"][0] == "2", "neither the requeued nor the canceled one"


@pytest.mark.parametrize(
    ("age", "ranges"),
    [
        (timedelta(seconds=70), {"1h", "24h", "7d"}),
        (timedelta(minutes=61), {"24h", "7d"}),
        (timedelta(hours=25), {"7d"}),
        (timedelta(days=8), set[str]()),
    ],
)
def test_a_range_has_all_of_its_attempts_and_no_other(
    running: RunningSystem, night: int, pages: Pages, age: timedelta, ranges: set[str]
) -> None:
    age_all(running, age)
    assert len(running.rows("SELECT id FROM webhook_delivery_jobs WHERE status = 'Failed'")) == 5
    for one in ("1h", "24h", "7d"):
        shown = pages.page(f"/console?range={one}")
        assert figures(shown)["failed attempts in the last 60 seconds"][0] == "0"
        codes = re.findall(
            r'<tr id="error-(\w+)">.*?class="number"><a href="([^"]*)">(\S+)</a>', shown.body, re.DOTALL
        )
        wanted = {"connection_refused": "4", "http_503": "1"} if one in ranges else {}
        assert {code: number for code, _, number in codes} == wanted
        for _, href, number in codes:
            assert listed(pages, html.unescape(href)) == (number, int(number))
        row = shown.body.partition(f'<tr id="endpoint-{night}">')[2].partition("</tr>")[0]
        assert "the shop&#39;s orders" in row
        links = re.findall(r'class="number"><a href="([^"]*)">(\S+)</a>', row)
        assert [number for _, number in links] == (["4", "4"] if one in ranges else ["0", "0"])
        bars = re.findall(r'<tr id="part-\d+"><td><a href="([^"]*)">', shown.body)
        assert len(bars) == (one in ranges)
        for href in [*bars, *(href for href, _ in links)]:
            assert listed(pages, html.unescape(href))[0] in ("5", "4", "0")


def test_a_range_that_is_none_is_refused(pages: Pages) -> None:
    answer = pages.get("/console?range=2h")
    assert answer.status == 422
    assert "range must be one of: 1h, 24h, 7d" in answer.text


def test_counting_ends_and_says_so(
    running: RunningSystem, night: int, pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_work, "MAX_COUNTED", 1)
    number, href = figures(pages.page("/console"))["waiting for a retry"]
    assert (number, listed(pages, href)[0]) == ("1+", "1+")
    assert counts.Count(0, at_least=True), "there may be some"
