"""Attributes of an event on its page, and why a filter left it out. Nothing of either is more than text."""

import json
from html import unescape
from typing import Any

from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.console.pages import Pages

URL = "https://127.0.0.1:1/hook"
HOSTILE = "<b>\"&' DE"


def event_beside(running: RunningSystem, wanted: dict[str, Any], **attributes: Any) -> str:
    """A routed event of a subscription with this filter."""
    kind = new_name("filtered")
    subscription = {"event_type": kind, "callback_url": URL, "filter": wanted}
    running.verify_by_hand(running.api.good("POST", "/v1/subscriptions", subscription)["id"])
    body = {"event_type": kind, "payload": 1, "attributes": attributes}
    event = running.api.post_event(json.dumps(body).encode()).json()["id"]
    wait_until(
        lambda: running.api.good("GET", f"/v1/events/{event}")["routing"]["state"] == "routed", "its routing"
    )
    return event


def test_the_page_of_an_event_shows_its_attributes(running: RunningSystem, pages: Pages) -> None:
    event = event_beside(running, {"a": [1]}, country=HOSTILE, total=1.10, vip=True, id=820982911946154508)
    body = pages.page(f"/console/events/{event}").body
    assert "<b>" not in body
    for name, value in (
        ("country", HOSTILE),
        ("total", "1.1"),
        ("vip", "true"),
        ("id", "820982911946154508"),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in unescape(body)


def test_the_page_names_the_condition_that_failed(running: RunningSystem, pages: Pages) -> None:
    event = event_beside(running, {"country": [HOSTILE, {"prefix": "x"}]}, country="<i>FR")
    body = pages.page(f"/console/events/{event}").body
    assert "<i>" not in body
    assert "filter did not match" in body
    assert 'the event has "<i>FR"' in unescape(body)
    assert '{"prefix": "x"}' in unescape(body)
    without = pages.page(f"/console/events/{event_beside(running, {'country': ['DE']})}").body
    assert 'country must match ["DE"]; the event has none' in unescape(without)
    either = event_beside(running, {"$or": [{"a": [1]}, {"b": [2]}]})
    page = unescape(pages.page(f"/console/events/{either}").body)
    assert 'no alternative of [{"a": [1]}, {"b": [2]}] matches' in page
