"""Enabling a subscription on a page tells what passed it by, and one click delivers exactly that."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post, subscribe
from tests.api.test_endpoint_health_api import disable
from tests.console.pages import Pages, Shown, portal

REFUSING = "https://127.0.0.1:1/hook"
SAGAS = (
    "SELECT e.webhook_id FROM webhook_delivery_sagas g JOIN events e ON e.id = g.event_id"
    " WHERE g.subscription_id = %s ORDER BY g.id"
)


def hidden(shown: Shown) -> dict[str, str]:
    """The fields of the offer's form."""
    found = re.findall(r'name="(since|until)" value="([^"]+)"', shown.body)
    return dict(found)


def routed(running: RunningSystem, events: list[str]) -> None:
    query = "SELECT count(*) AS n FROM routing_outbox"
    wait_until(lambda: running.rows(query)[0]["n"] == 0, f"{len(events)} events are routed")


def visitor(running: RunningSystem, place: str, tenant: str) -> Pages:
    if place == "console":
        return Pages(running.port).signed_in(running.key)
    key = running.new_key(tenant_id=tenant)
    link = str(running.api.with_key(key).good("POST", "/v1/portal-links", {})["url"])
    return portal(running.port, link.partition(str(running.port))[2])


@pytest.mark.parametrize("place", ["console", "portal"])
@pytest.mark.parametrize("by_hand", [True, False])
def test_enabling_it_offers_what_passed_by(running: RunningSystem, place: str, by_hand: bool) -> None:
    tenant = new_name("tenant")
    api, event_type = running.api.with_key(running.new_key(tenant_id=tenant)), new_name("missed")
    one = subscribe(running, api, event_type, REFUSING)["id"]
    pages, path = visitor(running, place, tenant), f"/{place}/subscriptions/{one}"
    if by_hand:
        assert pages.post(f"{path}/switch", active="no").status == 303
    else:
        disable(running, one)
    events = [post(api, event_type) for _ in range(3)]
    routed(running, events)
    location = pages.post(f"{path}/switch", active="yes").headers["location"]
    later = post(api, event_type)
    shown = pages.page(location)
    assert "3 events passed by while it was disabled." in shown.text
    assert pages.page(location).status == 200
    answer = pages.post(f"{path}/backfill", **hidden(shown))
    assert answer.status == 303
    wanted = {*events, later}
    wait_until(
        lambda: {f"evt_{row['webhook_id'].hex}" for row in running.rows(SAGAS, one)} == wanted,
        "each event has one delivery",
    )
    assert len(running.rows(SAGAS, one)) == len(wanted)
    if place == "console":
        assert answer.headers["location"].startswith("/console/bulk-operations/")
    else:
        assert "The events that passed by are being delivered." in pages.page(answer.headers["location"]).text
    operation = running.rows("SELECT matched, filter FROM bulk_operations ORDER BY id DESC LIMIT 1")[0]
    assert operation["matched"] == 3


def test_nothing_is_offered_where_nothing_was_missed(running: RunningSystem) -> None:
    pages = visitor(running, "console", "")
    one = subscribe(running, running.api, new_name("missed"), REFUSING)["id"]
    path = f"/console/subscriptions/{one}"
    pages.post(f"{path}/switch", active="no")
    location = pages.post(f"{path}/switch", active="yes").headers["location"]
    assert parse_qs(urlsplit(location).query) == {"done": ["switched_on"]}
    wrong = pages.page(f"{path}?done=switched_on&missed=1&dead=0&since=yesterday")
    assert "passed by" not in wrong.text


def test_a_key_without_the_scope_is_told_but_cannot_start_it(running: RunningSystem) -> None:
    event_type = new_name("missed")
    one = subscribe(running, running.api, event_type, REFUSING)["id"]
    disable(running, one)
    routed(running, [post(running.api, event_type)])
    pages = Pages(running.port).signed_in(running.new_key("subscriptions:write"))
    path = f"/console/subscriptions/{one}"
    shown = pages.page(pages.post(f"{path}/switch", active="yes").headers["location"])
    assert "One event passed by" in shown.text
    assert "Deliver these events" not in shown.text
    assert pages.post(f"{path}/backfill", since="2026-01-01T00:00").status == 403
