"""A form that was refused keeps what was typed, and a page that answers a form is not the end of the road."""

import pytest
from markupsafe import escape
from starlette.routing import Route

from hooksaga.console.routes import ROUTES
from tests.api.running_system import RunningSystem, new_name
from tests.console.pages import Pages, Shown, portal, tags

URL = "https://127.0.0.1:1/hook"


def unverified(running: RunningSystem, **more: str) -> int:
    """A subscription whose endpoint refuses the challenge."""
    wanted = {"event_type": new_name("form"), "callback_url": URL, **more}
    return int(running.api.good("POST", "/v1/subscriptions", wanted)["id"])


@pytest.fixture(scope="module")
def subscription(running: RunningSystem) -> int:
    return unverified(running)


def value_of(shown: Shown, name: str) -> str:
    """Return the value of a field."""
    fields = [one for tag, one in tags(shown.body) if tag == "input" and one.get("name") == name]
    (field,) = fields
    return str(field.get("value") or "")


def test_a_filter_is_kept_or_refused_beside_its_field(running: RunningSystem, pages: Pages) -> None:
    fields = {
        "event_types": new_name("filtered"),
        "callback_url": URL,
        "filter": '{"a": [{"numeric": [">", 1.50]}]}',
    }
    shown = pages.post("/console/subscriptions", **fields)
    assert shown.status == 303
    (row,) = running.rows(
        "SELECT id, filter::text AS filter FROM subscriptions WHERE event_types = %s", [fields["event_types"]]
    )
    assert row["filter"] == '{"a": [{"numeric": [">", 1.5]}]}'
    edit = f"/console/subscriptions/{row['id']}/edit"
    assert f"<code>{escape(row['filter'])}</code>" in pages.page(edit.removesuffix("/edit")).body
    assert "{&#34;a&#34;: [{&#34;numeric&#34;: [&#34;&gt;&#34;, 1.5]}]}</textarea>" in pages.page(edit).body
    for typed, said in (
        ('{"a": [{"numeric": [">"]}]}', "filter.a[0].numeric: must be one comparison"),
        ("{</textarea><b>", "filter: Expecting property name"),
        ("[]", "filter: Input should be a valid dictionary"),
    ):
        refused = pages.post(edit, **{**fields, "filter": typed})
        assert refused.status == 422
        assert 'aria-describedby="w-filter"' in refused.body
        assert f'<span class="wrong" id="w-filter"> <span lang="en">{escape(said)}' in refused.body
        assert f"{escape(typed)}</textarea>" in refused.body
    assert pages.post(edit, **{**fields, "filter": " "}).status == 303
    assert running.rows("SELECT FROM subscriptions WHERE id = %s AND filter IS NULL", row["id"])


def test_a_refused_test_event_is_still_there(pages: Pages, subscription: int) -> None:
    typed = '{"order": 12, "text": "</textarea><b>"'
    answer = pages.post(f"/console/subscriptions/{subscription}/test-event", payload=typed)
    assert answer.status == 422
    assert (
        "{&#34;order&#34;: 12, &#34;text&#34;: &#34;&lt;/textarea&gt;&lt;b&gt;&#34;</textarea>" in answer.body
    )
    fresh = pages.page(f"/console/subscriptions/{subscription}")
    assert "{&#34;test&#34;: true}</textarea>" in fresh.body


def test_a_refused_overlap_is_still_there(pages: Pages, subscription: int) -> None:
    answer = pages.post(f"/console/subscriptions/{subscription}/rotate-secret", overlap_hours="100000")
    assert answer.status == 422
    assert value_of(answer, "overlap_hours") == "100000"


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param({"name": "", "tenant_id": "acme", "scope:admin": "yes"}, id="no name"),
        pytest.param({"name": "mine", "tenant_id": "acme"}, id="no scope"),
        pytest.param({"name": "mine", "tenant_id": "no tenant!", "scope:admin": "yes"}, id="a wrong tenant"),
    ],
)
def test_a_refused_key_is_still_there(pages: Pages, refused: dict[str, str]) -> None:
    answer = pages.post("/console/keys", **refused)
    assert answer.status == 422
    assert value_of(answer, "name") == refused["name"]
    assert value_of(answer, "tenant_id") == refused["tenant_id"]
    checked = {str(one["name"]) for tag, one in tags(answer.body) if tag == "input" and "checked" in one}
    assert checked == {name for name in refused if name.startswith("scope:")}


def test_after_a_key_was_made_the_form_is_empty(pages: Pages) -> None:
    made = pages.post("/console/keys", name="mine", **{"scope:admin": "yes"})
    assert made.status == 303
    answer = pages.page(made.headers["location"])
    assert value_of(answer, "name") == ""
    assert "checked" not in answer.body


def way_back(pages: Pages, shown: Shown) -> str:
    """Where the link to the other language leads, followed to the page that it ends at."""
    link = next(href for href in shown.links() if "/console/language" in href)
    back = target = pages.get(link).headers["location"]
    while (answer := pages.get(target)).status == 303:
        target = answer.headers["location"]
    assert answer.status == 200, (back, target, answer.text)
    return back


ANSWERED_WITH_A_PAGE = [
    ("/subscriptions", {"event_types": "!"}, "/subscriptions/new"),
    ("/subscriptions/{id}/edit", {"event_types": "!"}, "/subscriptions/{id}/edit"),
    ("/subscriptions/{id}/verify", {}, "/subscriptions/{id}"),
    ("/subscriptions/{id}/rotate-secret", {"overlap_hours": "999999"}, "/subscriptions/{id}"),
    ("/subscriptions/{id}/test-event", {"payload": "{"}, "/subscriptions/{id}"),
]
ONLY_IN_THE_CONSOLE = [
    ("/bulk-operations", {"rate": "5"}, "/bulk-operations/new"),
    ("/keys", {"name": "mine"}, "/keys"),
    ("/portal-links", {"tenant_id": "-+-"}, "/portal-links"),
]


@pytest.mark.parametrize(("path", "fields", "back"), [*ANSWERED_WITH_A_PAGE, *ONLY_IN_THE_CONSOLE])
def test_the_other_language_of_an_answered_form_is_a_page(
    pages: Pages, subscription: int, path: str, fields: dict[str, str], back: str
) -> None:
    answer = pages.post("/console" + path.replace("{id}", str(subscription)), **fields)
    assert answer.status in (200, 201, 422), answer.text
    assert way_back(pages, answer) == "/console" + back.replace("{id}", str(subscription))


@pytest.mark.parametrize(("path", "fields", "back"), ANSWERED_WITH_A_PAGE)
def test_so_it_is_in_the_portal(running: RunningSystem, path: str, fields: dict[str, str], back: str) -> None:
    tenant = new_name("tenant")
    own = unverified(running, tenant_id=tenant)
    link = str(running.api.good("POST", "/v1/portal-links", {"tenant_id": tenant})["url"])
    pages = portal(running.port, link.partition(str(running.port))[2])
    answer = pages.post("/portal" + path.replace("{id}", str(own)), **fields)
    assert answer.status in (200, 422), answer.text
    assert way_back(pages, answer) == "/portal" + back.replace("{id}", str(own))


POSTED = [
    route.path
    for route in ROUTES
    if isinstance(route, Route) and "POST" in (route.methods or ()) and route.path.startswith("/console")
]


@pytest.mark.parametrize("path", POSTED)
def test_a_forms_fault_leads_on_to_a_page(pages: Pages, path: str) -> None:
    answer = pages.post(path.replace("{id}", "9999999"), csrf="wrong")
    assert answer.status in (401, 403)
    assert way_back(pages, answer)


def test_a_wrong_key_does_not_forget_where_it_was_to_lead(running: RunningSystem) -> None:
    pages = Pages(running.port)
    fields = {"key": "hs_wrong", "next": "/console/events?type=a.b"}
    answer = pages.post_raw("/console/sign-in", fields, origin=pages.origin)
    assert way_back(pages, answer) == "/console/sign-in?next=%2Fconsole%2Fevents%3Ftype%3Da.b"
