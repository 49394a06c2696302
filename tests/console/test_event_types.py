"""The catalogue on the pages: operators see all types, subscribers those that take events, and forms offer them."""

import pytest

from tests.api.running_system import RunningSystem, new_name
from tests.api.seeding import post
from tests.console.pages import Pages, portal, tags

ENTRY = (
    b'{"description": "An order.\\nWith <b>marks</b>.", "sample": {"total": 1.10, "mark": "<i>"},'
    b' "schema": {"properties": {"total": {"maximum": 1e2}}}, "on_mismatch": "warn",'
    b' "attributes": [{"name": "total", "pointer": "/total", "kind": "number"}]}'
)


@pytest.fixture
def event_type(running: RunningSystem) -> str:
    name = new_name("shop/order")
    assert running.api.call("PUT", f"/v1/event-types/{name}", ENTRY).status == 201
    return name


@pytest.fixture
def subscriber(running: RunningSystem) -> Pages:
    key = running.new_key(tenant_id=new_name("tenant"))
    url = str(running.api.with_key(key).good("POST", "/v1/portal-links", {})["url"])
    return portal(running.port, url[len(f"http://127.0.0.1:{running.port}") :])


@pytest.mark.parametrize("place", ["console", "portal"])
def test_a_type_is_shown_with_its_schema_and_sample(
    pages: Pages, subscriber: Pages, event_type: str, place: str
) -> None:
    seen = pages if place == "console" else subscriber
    listed = seen.page(f"/{place}/event-types")
    assert event_type in listed.text
    assert "An order." in listed.text
    shown = seen.page(f"/{place}/event-types/{event_type}")
    assert '"total": 1.10' in shown.text
    assert '"maximum": 1e2' in shown.text
    assert "With <b>marks</b>." in shown.text
    assert "<b>marks" not in shown.body
    form = seen.page(f"/{place}/subscriptions/new")
    if place == "console":
        assert "accepted with a warning" in shown.text
        assert f'<option value="{event_type}">An order.</option>' in form.body
        assert 'list="l-event_types"' in form.body
    else:
        assert '"total": 1.10' in listed.text
        assert f'name="type:{event_type}"' in form.body
        assert "An order." in form.text


def test_a_subscriber_ticks_types(subscriber: Pages, event_type: str) -> None:
    """Ticked types and typed ones are one list, and the form shows them again, each in its place."""
    fields = {
        f"type:{event_type}": "yes",
        "event_types": "invoice.*",
        "callback_url": "https://example.com/hook",
    }
    made = subscriber.post("/portal/subscriptions", **fields)
    assert made.status == 303
    home = made.headers["location"]
    assert {event_type, "invoice.*"} <= set(subscriber.page(home).text.replace(",", "").split())
    found = {
        one.get("name"): one for tag, one in tags(subscriber.page(f"{home}/edit").body) if tag == "input"
    }
    assert "checked" in found[f"type:{event_type}"]
    assert "checked" not in found["type:*"]
    assert found["event_types"]["value"] == "invoice.*"
    refused = subscriber.post(f"{home}/edit", **{**fields, "callback_url": "http://example.com/"})
    assert refused.status == 422
    found = {one.get("name"): one for tag, one in tags(refused.body) if tag == "input"}
    assert "checked" in found[f"type:{event_type}"]


def test_subscribers_do_not_see_archived_types(
    running: RunningSystem, pages: Pages, subscriber: Pages, event_type: str
) -> None:
    running.api.good("PUT", f"/v1/event-types/{event_type}", {"archived": True})
    assert "archived" in pages.page(f"/console/event-types/{event_type}").text
    assert event_type not in subscriber.page("/portal/event-types").text
    assert subscriber.get(f"/portal/event-types/{event_type}").status == 404
    assert event_type not in pages.page("/console/subscriptions/new").body


def test_an_event_shows_what_was_extracted(running: RunningSystem, pages: Pages, event_type: str) -> None:
    event = post(running.api, event_type, b'{"total": 1.10}')
    shown = pages.page(f"/console/events/{event}")
    assert "total 1.10 extracted" in " ".join(shown.text.split())


def test_a_test_event_begins_with_the_sample(running: RunningSystem, pages: Pages, event_type: str) -> None:
    wanted = {"event_type": event_type, "callback_url": "https://127.0.0.1:1/hook"}
    created = running.api.good("POST", "/v1/subscriptions", wanted)["id"]
    running.run("UPDATE subscriptions SET verified = true WHERE id = %s", created)
    assert '{"total": 1.10, "mark": "&lt;i&gt;"}' in pages.page(
        f"/console/subscriptions/{created}"
    ).body.replace("&#34;", '"')


def test_the_format_of_a_subscription_is_chosen_in_its_form(
    running: RunningSystem, pages: Pages, event_type: str
) -> None:
    wanted = {
        "event_types": event_type,
        "callback_url": "https://127.0.0.1:1/hook",
        "format": "cloudevents-binary",
    }
    assert pages.post("/console/subscriptions", **wanted).status == 303
    (made,) = running.api.good("GET", f"/v1/subscriptions?event_type={event_type}")["items"]
    assert made["format"] == "cloudevents-binary"
    form = pages.page(f"/console/subscriptions/{made['id']}/edit").body
    assert '<option value="cloudevents-binary" selected>' in form
    refused = pages.post(f"/console/subscriptions/{made['id']}/edit", **{**wanted, "format": "xml"})
    assert refused.status == 422
