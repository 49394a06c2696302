"""Every page: for whom it is, what stands in its headers, and that nothing that others wrote is more than text."""

import json
import re
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from hooksaga.console.pages import TEMPLATES, environment
from hooksaga.console.routes import ROUTES
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, Shown, portal, tags

REFUSING = "https://127.0.0.1:1/hook"


@dataclass(frozen=True)
class Kept:
    """One of everything that a tenant can have, by the id that stands in URLs."""

    tenant: str
    event_type: str
    subscription: int
    event: str
    saga: int
    delivery: int
    dead_letter: int
    bulk_operation: int
    key: str


def everything(running: RunningSystem, tenant: str) -> Kept:
    """A subscription whose endpoint refuses, an event that was given up, and a paused requeue of it."""
    key = running.new_key(tenant_id=tenant)
    api, event_type = running.api.with_key(key), new_name("shop.order")
    running.api.good("PUT", f"/v1/event-types/{event_type}", {})
    subscription = subscribe(running, api, event_type, REFUSING)["id"]
    event = post(api, event_type)
    letter = dead_letters(running, subscription, 1)[0]
    job = running.rows(
        "SELECT id, saga_id FROM webhook_delivery_jobs WHERE subscription_id = %s", subscription
    )
    wanted = {"kind": "requeue", "rate_per_second": 0.01, "filter": {"subscription_id": 9_999_999}}
    operation = api.good("POST", "/v1/bulk-operations", wanted)["id"]
    ids = (subscription, event, job[0]["saga_id"], job[0]["id"], letter, operation)
    return Kept(tenant, event_type, *ids, key)


@pytest.fixture(scope="module")
def kept(running: RunningSystem) -> Kept:
    return everything(running, new_name("tenant"))


@pytest.fixture(scope="module")
def others(running: RunningSystem) -> Kept:
    return everything(running, new_name("other"))


IDENTITIES = {
    "subscriptions": "subscription",
    "events": "event",
    "sagas": "saga",
    "deliveries": "delivery",
    "dead-letters": "dead_letter",
    "bulk-operations": "bulk_operation",
}
SEEN_BY_ALL = {
    "/console/sign-in",
    "/console/language",
    "/console/assets/{name}",
    "/portal/enter",
    "/portal/ended",
}
OF_A_SESSION = [
    (method, route.path)
    for route in ROUTES
    if isinstance(route, Route) and route.path not in SEEN_BY_ALL
    for method in sorted((route.methods or set()) - {"HEAD"})
]
WITH_AN_ID = [(method, path) for method, path in OF_A_SESSION if "{id}" in path and "/keys/" not in path]


def at(path: str, one: Kept) -> str:
    """The path with the id of what it is about."""
    path = path.replace("{name:path}", one.event_type)
    if "{id}" not in path:
        return path.replace("{rest:path}", "nowhere")
    kind = path.split("/")[2]
    return path.replace("{id}", str(getattr(one, IDENTITIES[kind])))


def link_for(running: RunningSystem, one: Kept, **more: str) -> str:
    made = running.api.with_key(one.key).good("POST", "/v1/portal-links", more)["url"]
    return str(made)[len(f"http://127.0.0.1:{running.port}") :]


def visitor(running: RunningSystem, path: str, one: Kept) -> Pages:
    if path.startswith("/portal"):
        return portal(running.port, link_for(running, one))
    return Pages(running.port).signed_in(one.key)


@pytest.mark.parametrize(("method", "path"), OF_A_SESSION)
def test_every_page_needs_a_session(running: RunningSystem, method: str, path: str) -> None:
    pages = Pages(running.port)
    target = path.replace("{id}", "1").replace("{rest:path}", "nowhere")
    answer = pages.get(target) if method == "GET" else pages.post_raw(target, {}, origin=pages.origin)
    assert answer.status == 303
    assert answer.headers["location"].startswith(("/console/sign-in", "/portal/ended"))


@pytest.mark.parametrize(("method", "path"), WITH_AN_ID)
def test_another_tenants_id_is_no_page(
    running: RunningSystem, kept: Kept, others: Kept, method: str, path: str
) -> None:
    pages = visitor(running, path, kept)
    with running.nothing_stored():
        if method == "GET":
            answer = pages.get(at(path, others))
            assert pages.page(at(path, kept)), "its own it sees"
        else:
            fields = {
                "event_types": "a.b",
                "callback_url": REFUSING,
                "rate": "1",
                "active": "no",
                "payload": "{}",
            }
            answer = pages.post(at(path, others), **fields)
    assert answer.status == 404, answer.text
    assert others.event_type not in answer.body


@pytest.mark.parametrize("place", ["console", "portal"])
def test_lists_hold_a_tenants_own_only(running: RunningSystem, kept: Kept, others: Kept, place: str) -> None:
    pages = visitor(running, f"/{place}", kept)
    for name in ("events", "subscriptions", "deliveries", "dead-letters", "bulk-operations"):
        if place == "portal" and name in ("events", "bulk-operations"):
            continue
        for query in ("", f"?tenant={others.tenant}", f"?subscription={others.subscription}"):
            shown = pages.page(f"/{place}/{name}{query}")
            assert others.event_type not in shown.body
            assert others.event not in shown.body
        assert kept.event_type in pages.page(f"/{place}/{name}").body or name == "bulk-operations"


@pytest.mark.parametrize("path", ["/console/keys", "/console/open"])
def test_what_is_of_all_tenants_is_not_for_one(running: RunningSystem, kept: Kept, path: str) -> None:
    assert Pages(running.port).signed_in(kept.key).get(path).status == 403


def test_a_key_of_one_tenant_makes_no_key(running: RunningSystem, kept: Kept) -> None:
    pages = Pages(running.port).signed_in(kept.key)
    before = running.rows("SELECT count(*) AS keys FROM list_api_keys()")
    answer = pages.post("/console/keys", name="mine", **{"scope:admin": "yes"})
    assert answer.status == 403
    assert running.rows("SELECT count(*) AS keys FROM list_api_keys()") == before


NEEDED = {
    "events": ("admin", "events:write"),
    "subscriptions": ("subscriptions:write",),
    "portal-links": ("subscriptions:write",),
    "event-types": ("subscriptions:write", "admin"),
    "search": ("admin", "events:write", "subscriptions:write"),
    "sign-out": ("admin", "events:write", "subscriptions:write"),
}
"""The scopes that open a path, by its first part; all others need admin."""


@pytest.mark.parametrize("scope", ["events:write", "subscriptions:write", "admin"])
def test_each_page_and_action_needs_the_apis_scope(running: RunningSystem, kept: Kept, scope: str) -> None:
    pages = Pages(running.port).signed_in(running.new_key(scope, tenant_id=kept.tenant))
    csrf = re.search(r'name="csrf" value="([^"]+)"', pages.get("/console/nowhere").body)
    assert csrf is not None
    for method, path in OF_A_SESSION:
        if not path.startswith("/console/") or "{rest" in path or path.endswith("/keys/{id}/revoke"):
            continue
        part = path.split("/")[2]
        needed = (
            ("admin",)
            if path == "/console/events" or path.endswith(("/retry-now", "/backfill"))
            else NEEDED.get(part, ("admin",))
        )
        target = at(path, kept)
        if method == "POST" and scope in needed:
            continue
        answer = pages.get(target) if method == "GET" else pages.post(target, csrf=csrf[1])
        wanted = 200 if scope in needed and part not in ("keys", "open") else 403
        assert answer.status == wanted, (method, target, answer.status, answer.text)


def test_a_test_event_needs_the_scope_to_send(running: RunningSystem, kept: Kept) -> None:
    pages = Pages(running.port).signed_in(running.new_key("subscriptions:write", tenant_id=kept.tenant))
    path = f"/console/subscriptions/{kept.subscription}"
    assert "Send a test event" not in pages.page(path).text
    with running.nothing_stored():
        assert pages.post(f"{path}/test-event", payload="{}").status == 403


GETS = [
    path for method, path in OF_A_SESSION if method == "GET" and "{rest" not in path and "css" not in path
]


@pytest.mark.parametrize("path", GETS)
def test_every_page_says_what_a_browser_may_do_with_it(running: RunningSystem, kept: Kept, path: str) -> None:
    pages = visitor(running, path, kept)
    if path in ("/console", "/console/open", "/console/keys"):
        pages = Pages(running.port).signed_in(running.key)
    answer = pages.get(at(path, kept))
    if answer.status == 303:
        return
    assert answer.status == 200
    parts = [part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")]
    policy = {name: value for name, _, value in parts}
    assert policy["default-src"] == "'none'"
    assert (policy["script-src"], policy["style-src"]) == ("'self'", "'self'")
    assert (policy["frame-ancestors"], policy["form-action"], policy["base-uri"]) == (
        "'none'",
        "'self'",
        "'none'",
    )
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    for tag, attributes in tags(answer.body):
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (
            tag,
            attributes,
        )
        assert tag != "style"
        if tag == "script":
            assert str(attributes["src"]).startswith("/console/assets/")
        for name in ("src", "href", "action"):
            assert not str(attributes.get(name) or "").startswith(("http:", "//", "javascript:", "data:"))


SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "query",
    [
        f"?type={SCRIPT}",
        "?type=%22%3E%3Cimg src=x onerror=alert(1)%3E".replace(" ", "%20"),
        "?error=%27%22%3E%3Csvg/onload=alert(1)%3E",
        "?after=%3Cb%3E",
        "?subscription=%3Cb%3E",
        "?cursor=%3Cb%3E",
        "?q=%3Cb%3E%3Csvg/onload=alert(1)%3E",
        "?status=%3Cb%3E",
    ],
)
@pytest.mark.parametrize(
    "name", ["events", "deliveries", "dead-letters", "subscriptions", "bulk-operations", "search"]
)
def test_what_is_searched_for_is_only_text(pages: Pages, name: str, query: str) -> None:
    answer = pages.get(f"/console/{name}{query}")
    assert answer.status in (200, 422)
    assert SCRIPT not in answer.body
    assert not [
        tag for tag, attributes in tags(answer.body) if tag in ("svg", "b") or attributes.get("src") == "x"
    ]
    assert not [attributes for _, attributes in tags(answer.body) if {"onerror", "onload"} & set(attributes)]


ENDS_OF_THE_CALENDAR = [
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-01:00",
]
PAGES_WITH_TIMES = [
    "/console/events",
    "/console/events?type=a.b",
    "/console/events?subscription=1",
    "/console/deliveries",
    "/console/deliveries?subscription=1",
    "/console/dead-letters",
    "/portal/deliveries",
    "/portal/dead-letters",
]


@pytest.mark.parametrize("path", PAGES_WITH_TIMES)
@pytest.mark.parametrize("name", ["after", "before"])
def test_a_time_at_the_end_of_the_calendar_is_taken(
    running: RunningSystem, kept: Kept, path: str, name: str
) -> None:
    """A time outside the calendar in UTC becomes the first or last time in it."""
    pages = visitor(running, path, kept)
    for time in ENDS_OF_THE_CALENDAR:
        asked = f"{path}{'&' if '?' in path else '?'}{urlencode({name: time})}"
        answer = pages.get(asked)
        assert answer.status == 200, (asked, answer.text)
        assert f'value="{time[:19]}"' in answer.body, "the field takes it again as it was given"


@pytest.mark.parametrize("time", ENDS_OF_THE_CALENDAR)
def test_a_requeue_to_the_end_of_the_calendar_is_counted(pages: Pages, time: str) -> None:
    for name in ("after", "before"):
        answer = pages.post("/console/bulk-operations", rate="1", subscription="9999999", **{name: time})
        assert answer.status == 200, answer.text


def first_page(pages: Pages, path: str = "/console") -> Shown:
    """Where a path leads in the end."""
    while (answer := pages.get(path)).status == 303:
        path = answer.headers["location"]
    return answer


FIRST_PAGES = [
    (("admin",), False, "Now"),
    (("admin",), True, "Events"),
    (("subscriptions:write",), False, "Subscriptions"),
    (("events:write", "subscriptions:write"), True, "Subscriptions"),
    (("events:write",), False, "This key cannot open lists"),
    (("events:write",), True, "This key cannot open lists"),
]


@pytest.mark.parametrize(("scopes", "bound", "title"), FIRST_PAGES)
def test_a_key_is_led_to_the_first_page_that_it_opens(
    running: RunningSystem, kept: Kept, scopes: tuple[str, ...], bound: bool, title: str
) -> None:
    """After signing in, and from a page that it may not see."""
    pages = Pages(running.port)
    key = running.new_key(*scopes, tenant_id=kept.tenant if bound else None)
    answer = pages.post_raw("/console/sign-in", {"key": key}, origin=pages.origin)
    shown = first_page(pages, answer.headers["location"])
    assert (shown.status, f"<h1>{title}</h1>" in shown.body) == (200, True), shown.text
    refused = pages.get("/console/open") if bound or scopes != ("admin",) else pages.get("/console/no")
    assert refused.status in (403, 404)
    (back,) = re.findall(r'<a href="([^"]+)">Go to the start page</a>', refused.body)
    shown = first_page(pages, back)
    assert (shown.status, f"<h1>{title}</h1>" in shown.body) == (200, True), shown.text


@pytest.mark.parametrize("scopes", [("subscriptions:write",), ("subscriptions:write", "admin")])
def test_no_link_leads_to_a_place_that_the_page_does_not_have(
    running: RunningSystem, kept: Kept, scopes: tuple[str, ...]
) -> None:
    pages = Pages(running.port).signed_in(running.new_key(*scopes, tenant_id=kept.tenant))
    body = pages.page(f"/console/subscriptions/{kept.subscription}").body
    found = tags(body)
    named = {f"#{attributes['id']}" for _, attributes in found if "id" in attributes}
    assert {str(one["href"]) for _, one in found if str(one.get("href")).startswith("#")} <= named
    assert ("outcome=failed" in body) == ("admin" in scopes)


def test_the_end_of_a_portal_can_be_read_in_any_frame(running: RunningSystem) -> None:
    """The page contains nothing that clickjacking could use, and is the only one that any site may frame."""
    pages = Pages(running.port)
    assert pages.get("/portal/enter?token=old").headers["location"] == "/portal/ended"
    answer = pages.get("/portal/ended")
    assert "This link has expired" in answer.text
    assert "x-frame-options" not in answer.headers
    assert answer.headers["content-security-policy"].endswith("frame-ancestors *")
    assert not [tag for tag, _ in tags(answer.body) if tag in ("form", "input", "button")]
    refused = pages.get("/portal/subscriptions")
    assert refused.headers["location"] == "/portal/ended"
    assert pages.get("/console/sign-in").headers["x-frame-options"] == "DENY"


def test_what_others_wrote_is_only_text(running: RunningSystem, pages: Pages) -> None:
    """Event types and tenants have a restricted alphabet; all other external text can be anything."""
    api, event_type = running.api, new_name("xss")
    wanted = {"description": SCRIPT, "headers": {"x-shop": SCRIPT}}
    subscription = subscribe(running, api, event_type, f"{REFUSING}?q={SCRIPT}", **wanted)["id"]
    event = post(api, event_type, json.dumps({"text": f"</pre>{SCRIPT}"}).encode())
    letter = dead_letters(running, subscription, 1)[0]
    job = running.rows(
        "SELECT id, saga_id FROM webhook_delivery_jobs WHERE subscription_id = %s", subscription
    )[0]
    answer_of(running, job["id"], f"</pre>{SCRIPT}")
    pages.post("/console/bulk-operations", rate="1", reason=SCRIPT, subscription="9999999", step="start")
    pages.post("/console/keys", name=SCRIPT[:90], **{"scope:admin": "yes"})
    for path in (
        f"/console/events/{event}",
        f"/console/deliveries/{job['id']}",
        f"/console/dead-letters/{letter}",
        f"/console/subscriptions/{subscription}",
        f"/console/subscriptions/{subscription}/edit",
        "/console/subscriptions",
        "/console/bulk-operations",
        "/console/keys",
        "/console",
    ):
        body = pages.page(path).body
        assert SCRIPT not in body, path
        assert [tag for tag, attributes in tags(body) if tag == "script" and "src" not in attributes] == []


def test_an_attempt_tells_that_its_post_went_out_twice(
    running: RunningSystem, kept: Kept, pages: Pages
) -> None:
    page = f"/console/deliveries/{kept.delivery}"
    assert "sent again over a new connection" not in pages.page(page).text
    running.run("SET session_replication_role = replica")
    running.run("UPDATE webhook_delivery_jobs SET reconnected = true WHERE id = %s", kept.delivery)
    running.run("RESET session_replication_role")
    assert "sent again over a new connection" in pages.page(page).text


def answer_of(running: RunningSystem, job_id: int, body: str) -> None:
    """Store this response; a finished job never changes, so the guard is disabled meanwhile."""
    running.run("SET session_replication_role = replica")
    running.run("UPDATE webhook_delivery_jobs SET response_body = %s WHERE id = %s", body, job_id)
    running.run("RESET session_replication_role")


def test_numbers_lead_to_the_rows_behind_them(running: RunningSystem, kept: Kept, pages: Pages) -> None:
    hrefs = {href for href in pages.page("/console").links("/console/") if "/language" not in href}
    assert len(hrefs) > 5
    for href in hrefs:
        assert pages.page(href).text


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/console/subscriptions", "subscription"),
        ("/console/deliveries", "delivery"),
        ("/console/dead-letters", "dead_letter"),
        ("/console/bulk-operations", "bulk_operation"),
        ("/console/events", "event"),
    ],
)
def test_an_operators_list_of_one_tenant(
    kept: Kept, others: Kept, pages: Pages, path: str, name: str
) -> None:
    shown = pages.page(f"{path}?tenant={kept.tenant}")
    links = shown.links(f"{path}/")
    assert f"{path}/{getattr(kept, name)}" in links
    assert f"{path}/{getattr(others, name)}" not in links
    assert kept.tenant in shown.text
    assert 'name="tenant"' in shown.body


def test_pages_follow_one_another(running: RunningSystem, pages: Pages) -> None:
    """Older events follow by cursor: none is met twice, none is left out."""
    event_type = new_name("many")
    sent = {post(running.api, event_type) for _ in range(60)}
    path, found = f"/console/events?type={event_type}", list[str]()
    while path:
        shown = pages.page(path)
        found += re.findall(r"/console/events/(evt_[0-9a-f]{32})", shown.body)
        path = next((href for href in shown.links("/console/events?") if "cursor=" in href), "")
    assert sorted(found) == sorted(sent)


def test_a_life_is_told_from_its_beginning_to_its_end(kept: Kept, pages: Pages) -> None:
    text = pages.page(f"/console/events/{kept.event}").text
    told = [
        "Accepted",
        "Routed to one subscription",
        "Started",
        "Attempt 1",
        "connection_refused",
        "Dead-lettered",
    ]
    places = [text.index(word) for word in told]
    assert places == sorted(places)


def test_events_are_found_by_subscription_and_error_word(kept: Kept, others: Kept, pages: Pages) -> None:
    found = pages.page(f"/console/events?subscription={kept.subscription}&error=connection_refused")
    assert kept.event in found.body
    assert others.event not in found.body
    assert (
        kept.event not in pages.page(f"/console/events?subscription={kept.subscription}&error=http_503").body
    )


def test_every_template_is_well_formed() -> None:
    for path in TEMPLATES.glob("*.html"):
        environment().get_template(path.name)


def test_reading_needs_no_script(kept: Kept, pages: Pages) -> None:
    """Whatever a script would fetch is in the page already."""
    whole = pages.page("/console").text
    for words in ("delivered in the last 60 seconds", "Charts as a table", "Error codes"):
        assert words in whole


def test_a_dead_letter_is_requeued_from_its_page(running: RunningSystem, pages: Pages) -> None:
    event_type = new_name("again")
    subscription = subscribe(running, running.api, event_type, REFUSING)["id"]
    event = post(running.api, event_type)
    letter = dead_letters(running, subscription, 1)[0]
    answer = pages.post(f"/console/dead-letters/{letter}/requeue")
    assert answer.headers["location"] == f"/console/events/{event}"
    wait_until(lambda: len(dead_letters(running, subscription, 1)) == 2, "it was tried again")
    assert "requeued" in pages.page(f"/console/dead-letters/{letter}").text
