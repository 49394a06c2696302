"""Lists: filters that keep what was typed, exports, and rows that are chosen and sent again together."""

import json
import re

import pytest

from hooksaga.console.dead_letters import DeadLetterChoice
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, Shown, portal, tags

REFUSING = "https://127.0.0.1:1/hook"


def refused(running: RunningSystem, how_many: int, **more: str) -> tuple[int, list[int]]:
    """A subscription, and so many dead letters of it, newest first."""
    event_type = new_name("lists")
    key = running.new_key(tenant_id=more.get("tenant_id"))
    subscription = subscribe(running, running.api.with_key(key), event_type, REFUSING)["id"]
    for _ in range(how_many):
        post(running.api.with_key(key), event_type)
    return subscription, dead_letters(running, subscription, how_many)


WRONG = [
    ("/console/dead-letters", "subscription", "x1", "must be an integer"),
    ("/console/dead-letters", "after", "yesterday", "must be a time"),
    ("/console/dead-letters", "state", "perhaps", "must be one of"),
    ("/console/deliveries", "answer", "9xx", "must be one of"),
    ("/console/deliveries", "before", "soon", "must be a time"),
    ("/console/events", "status", "late", "must be one of"),
    ("/console/events", "subscription", "-1", "must be an integer"),
    ("/console/subscriptions", "type", "x" * 101, "at most 100"),
    ("/console/bulk-operations", "status", "Late", "must be one of"),
    ("/console/open", "state", "late", "must be one of"),
    ("/console/open", "subscription", "x", "must be an integer"),
]


@pytest.mark.parametrize(("path", "name", "typed", "rule"), WRONG)
def test_a_bad_filter_stays_in_its_field_with_the_rule_beside_it(
    pages: Pages, path: str, name: str, typed: str, rule: str
) -> None:
    other = "subscription" if name != "subscription" and path.endswith("open") else "tenant"
    answer = pages.get(f"{path}?{name}={typed}&{other}=77")
    assert answer.status == 422
    (field,) = [
        found for tag, found in tags(answer.body) if found.get("name") == name and tag in ("input", "select")
    ]
    assert field["aria-invalid"] == "true"
    beside = re.search(rf'id="{field["aria-describedby"]}">(.*?)</span>', answer.body, re.DOTALL)
    assert beside is not None
    assert rule in beside[1]
    kept = [found for tag, found in tags(answer.body) if typed in (found.get("value") or "")]
    assert kept, "what was typed is still there"
    if (path, name) != ("/console/open", "subscription"):
        assert f'name="{other}" type="text" value="77"' in answer.body


def wrong_fields(shown: Shown) -> set[str]:
    return {str(found["name"]) for _, found in tags(shown.body) if found.get("aria-invalid") == "true"}


@pytest.mark.parametrize("place", ["deliveries", "dead-letters", "events"])
def test_every_wrong_field_is_named_and_the_good_ones_are_kept(pages: Pages, place: str) -> None:
    answer = pages.get(f"/console/{place}?subscription=x1&after=soon&tenant={'x' * 101}&type=order.paid")
    assert answer.status == 422
    assert wrong_fields(answer) == {"subscription", "after", "tenant"}
    assert 'name="type" type="text" value="order.paid"' in answer.body
    for typed in ("x1", "soon", "x" * 101):
        assert f'value="{typed}"' in answer.body


@pytest.mark.parametrize("place", ["deliveries", "dead-letters", "events"])
def test_a_time_that_ends_before_it_begins_is_refused(pages: Pages, place: str) -> None:
    pages.headers["accept-language"] = "zh-TW"
    answer = pages.get(f"/console/{place}?after=2026-01-02T00:00&before=2026-01-01T00:00")
    assert answer.status == 422
    assert wrong_fields(answer) == {"before"}
    assert "必須晚於 2026-01-02T00:00。" in answer.text
    assert "must be" not in answer.text


@pytest.mark.parametrize(
    "query", ["before_id=x", "format=xml", "cursor=nonsense", "format=xml&before_id=x&cursor=nonsense"]
)
@pytest.mark.parametrize(
    "place", ["deliveries", "dead-letters", "events", "subscriptions", "bulk-operations"]
)
def test_what_no_form_sends_keeps_what_was_typed_too(pages: Pages, place: str, query: str) -> None:
    answer = pages.get(f"/console/{place}?tenant=acme&{query}")
    if answer.status == 200:
        assert query in ("before_id=x", "cursor=nonsense"), "the other way to turn pages"
        return
    assert answer.status == 422
    assert 'name="tenant" type="text" value="acme"' in answer.body
    assert any(name in answer.text for name in ("before_id", "format", "cursor"))


def test_an_error_code_of_the_inside_is_refused_beside_its_field(running: RunningSystem) -> None:
    pages = Pages(running.port).signed_in(running.new_key(tenant_id=new_name("tenant")))
    answer = pages.get("/console/dead-letters?error=dns_error")
    assert (answer.status, 'aria-describedby="w-error"' in answer.body) == (422, True)


@pytest.mark.parametrize("name", ["events", "deliveries", "dead-letters", "subscriptions", "bulk-operations"])
def test_each_list_leads_to_its_files(running: RunningSystem, pages: Pages, name: str) -> None:
    tenant = new_name("export")
    subscription, _ = refused(running, 2, tenant_id=tenant)
    key = running.new_key(tenant_id=tenant)
    wanted = {"kind": "requeue", "filter": {"subscription_id": subscription, "error_code": "http_418"}}
    running.api.with_key(key).good("POST", "/v1/bulk-operations", wanted)
    path = f"/console/{name}?tenant={tenant}"
    links = [link for link in pages.page(path).links(f"/console/{name}") if "format=" in link]
    assert len(links) == 2
    for link in links:
        assert f"tenant={tenant}" in link
    rows = len(pages.page(links[0]).body.splitlines()) - 1
    lines = [json.loads(line) for line in pages.page(links[1]).body.splitlines()]
    assert rows == len(lines) == (1 if name in ("subscriptions", "bulk-operations") else 2)
    assert {line["tenant_id"] for line in lines} == {tenant}
    file = pages.page(links[0])
    assert file.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
    assert file.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("place", ["console", "portal"])
def test_chosen_dead_letters_are_requeued_together(running: RunningSystem, place: str) -> None:
    """Those that were ticked and no others, once; then the same list says how many."""
    tenant = new_name("tenant")
    subscription, letters = refused(running, 3, tenant_id=tenant)
    strangers = refused(running, 1, tenant_id=new_name("other"))[1]
    pages = Pages(running.port).signed_in(running.new_key(tenant_id=tenant))
    if place == "portal":
        link = str(running.api.good("POST", "/v1/portal-links", {"tenant_id": tenant})["url"])
        pages = portal(running.port, link.partition(str(running.port))[2])
    path = f"/{place}/dead-letters?subscription={subscription}"
    shown = pages.page(path)
    boxes = [found for tag, found in tags(shown.body) if (found.get("name") or "").startswith("tick:")]
    assert [box["name"] for box in boxes] == [f"tick:{one}" for one in letters]
    assert {box["form"] for box in boxes} == {"ticked"}
    (filters,) = [found["value"] for _, found in tags(shown.body) if found.get("name") == "filters"]
    chosen = {f"tick:{one}": "yes" for one in (*letters[:2], *strangers)}
    answer = pages.post(f"/{place}/dead-letters/requeue", filters=str(filters), **chosen)
    assert answer.status == 303
    where = answer.headers["location"]
    assert where == f"/{place}/dead-letters?subscription={subscription}&chosen=3&started=2"
    told = "2 of 3 were started" if place == "console" else "Sent again: 2 of 3."
    assert told in pages.page(where).text
    query = "SELECT requeued_from FROM webhook_delivery_sagas WHERE requeued_from = ANY (%s)"
    started = {row["requeued_from"] for row in running.rows(query, [*letters, *strangers])}
    assert started == set(letters[:2])
    again = pages.post(f"/{place}/dead-letters/requeue", filters=str(filters), **chosen)
    assert again.headers["location"].endswith("&chosen=3&started=0")
    standing = pages.page(f"{path}&state=standing")
    offered = [found.get("value") for tag, found in tags(standing.body) if tag == "option"]
    assert set(DeadLetterChoice) <= set(offered)
    open_ones = standing.links(f"/{place}/dead-letters/")
    wait_until(lambda: len(dead_letters(running, subscription, 5)) == 5, "both failed again")
    assert f"/{place}/dead-letters/{letters[2]}" in open_ones
    assert not {f"/{place}/dead-letters/{one}" for one in letters[:2]} & set(open_ones)


def test_chosen_deliveries_are_resent_together(running: RunningSystem, pages: Pages) -> None:
    subscription, _ = refused(running, 2)
    query = "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s ORDER BY id"
    sagas = [row["id"] for row in running.rows(query, subscription)]
    path = f"/console/deliveries?subscription={subscription}&outcome=failed"
    boxes = [
        found["name"]
        for _, found in tags(pages.page(path).body)
        if (found.get("name") or "").startswith("tick:")
    ]
    assert sorted(str(name) for name in boxes) == [f"tick:{one}" for one in sagas]
    answer = pages.post(
        "/console/deliveries/resend", filters="outcome=failed&nonsense=1", **{f"tick:{sagas[0]}": "yes"}
    )
    assert answer.headers["location"] == "/console/deliveries?outcome=failed&chosen=1&started=1"
    assert "All 1 were started" in pages.page(answer.headers["location"]).text
    resent = "SELECT resent_from FROM webhook_delivery_sagas WHERE subscription_id = %s AND resent_from IS NOT NULL"
    assert [row["resent_from"] for row in running.rows(resent, subscription)] == sagas[:1]


def test_nothing_chosen_and_wrong_choices_start_nothing(pages: Pages) -> None:
    answer = pages.post("/console/dead-letters/requeue")
    assert answer.headers["location"] == "/console/dead-letters?chosen=0&started=0"
    for name in ("tick:0", "tick:x", "tick:", f"tick:{2**63}"):
        assert pages.post("/console/dead-letters/requeue", **{name: "yes"}).status == 422
        assert pages.post("/console/deliveries/resend", **{name: "yes"}).status == 422
