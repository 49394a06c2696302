"""Flow control on the pages: the state and its reason, the form, and pause and resume with one click each."""

import json
import re

import pytest

from hooksaga.console.portal_words_zh_hant import PORTAL_WORDS
from hooksaga.console.words_zh_hant import WORDS
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe
from tests.console.pages import Pages, Shown, portal, tags

REFUSING = "https://127.0.0.1:1/hook"


@pytest.fixture(scope="module")
def tenant() -> str:
    return new_name("tenant")


@pytest.fixture(params=["console", "portal"])
def place(request: pytest.FixtureRequest, running: RunningSystem, tenant: str) -> Pages:
    """A browser of an operator, and one of a subscriber."""
    key = running.new_key(tenant_id=tenant)
    if request.param == "console":
        return Pages(running.port).signed_in(key)
    url = str(running.api.with_key(key).good("POST", "/v1/portal-links", {})["url"])
    return portal(running.port, url[len(f"http://127.0.0.1:{running.port}") :])


class Subscribed:
    """A subscription of the tenant whose endpoint refuses every connection."""

    def __init__(self, running: RunningSystem, tenant: str) -> None:
        self.running, self.api = running, running.api.with_key(running.new_key(tenant_id=tenant))
        one = subscribe(running, self.api, new_name("flow"), REFUSING)
        self.id, self.event_type = int(one["id"]), str(one["event_type"])

    def flow(self) -> dict[str, object]:
        return self.api.good("GET", f"/v1/subscriptions/{self.id}")["flow"]

    def wait_for(self, waiting: int) -> None:
        wait_until(lambda: self.flow()["waiting"] == waiting, f"{waiting} wait")


@pytest.fixture
def subscribed(running: RunningSystem, tenant: str) -> Subscribed:
    return Subscribed(running, tenant)


def click(pages: Pages, shown: Shown, button: str) -> Shown:
    """Submit the form with this button as it stands on the page; the page that it leads to."""
    forms = re.findall(r"<form[^>]*>.*?</form>", shown.body, flags=re.DOTALL)
    (form,) = [one for one in forms if button in one]
    found = tags(form)
    action = str(found[0][1]["action"])
    fields = {str(one["name"]): str(one["value"]) for tag, one in found if tag == "input"}
    answer = pages.post_raw(action, fields, origin=pages.origin)
    assert answer.status == 303, answer.text
    return pages.page(answer.headers["location"])


def test_one_click_pauses_and_one_resumes(place: Pages, subscribed: Subscribed) -> None:
    home = f"{place.base}/subscriptions/{subscribed.id}"
    shown = place.page(home)
    delivering = place.words("delivering", "active")
    assert delivering in shown.text
    kept = place.words("While a subscription is paused", "While it is paused")
    assert f"{kept}, its events are kept and wait." in shown.text
    shown = click(place, shown, ">Pause<")
    assert place.words("The subscription is paused.", "The endpoint is paused.") in shown.text
    assert subscribed.flow()["state"] == "paused"
    resume = place.words("Resume and deliver", "Resume and send")
    assert f"{resume} 0 waiting" in shown.text
    assert place.words("discard", "Resume without") not in shown.text
    for _ in range(2):
        post(subscribed.api, subscribed.event_type)
    subscribed.wait_for(2)
    listed = place.page(f"{place.base}/subscriptions?type={subscribed.event_type}").text
    assert "paused" in listed
    assert "2 waiting" in listed
    shown = click(place, place.page(home), f"{resume} 2 waiting")
    assert place.words("The subscription is resumed.", "Events are sent again.") in shown.text
    dead_letters(subscribed.running, subscribed.id, 2)
    assert delivering in place.page(home).text


def test_one_click_discards_the_backlog(place: Pages, subscribed: Subscribed) -> None:
    home = f"{place.base}/subscriptions/{subscribed.id}"
    click(place, place.page(home), ">Pause<")
    post(subscribed.api, subscribed.event_type)
    subscribed.wait_for(1)
    shown = place.page(home)
    told = "Without them: they become failed deliveries, which you can send again."
    assert place.words("Discarded deliveries become dead letters, which can be requeued.", told) in shown.text
    discard = place.words("Resume and discard", "Resume without")
    shown = click(place, shown, f"{discard} 1 waiting")
    told = "Those that waited are failed deliveries now."
    assert place.words("The deliveries that waited become dead letters.", told) in shown.text
    dead_letters(subscribed.running, subscribed.id, 1)
    query = "SELECT final_error_code AS code FROM dead_letters WHERE subscription_id = %s"
    assert [row["code"] for row in subscribed.running.rows(query, subscribed.id)] == ["discarded"]


def test_an_unknown_backlog_resumes_nothing(place: Pages, subscribed: Subscribed) -> None:
    home = f"{place.base}/subscriptions/{subscribed.id}"
    click(place, place.page(home), ">Pause<")
    assert place.post(f"{home}/resume", backlog="drop").status == 422
    assert subscribed.flow()["state"] == "paused"


CLOSE = """UPDATE subscription_flow SET breaker_opened_at = %s, probe_at = %s, retry_after_until = %s
            WHERE subscription_id = %s"""
FAR = "2100-01-01T00:00:00Z"
CLOSED = {
    "breaker_open": (("2026-03-14T09:00:00Z", FAR, None), "circuit breaker open"),
    "retry_after": ((None, None, FAR), "waits for Retry-After"),
}
PORTAL_CLOSED = {
    "breaker_open": "held back after many failures",
    "retry_after": "waiting, as the endpoint asked",
}
REASONS = {
    "breaker_open": "the circuit breaker of the subscription is open",
    "retry_after": "the endpoint asked for time (Retry-After)",
}


@pytest.mark.parametrize("state", CLOSED)
@pytest.mark.parametrize("language", ["en", "zh-TW"])
def test_the_pages_say_what_keeps_deliveries(
    place: Pages, subscribed: Subscribed, state: str, language: str
) -> None:
    place.headers["accept-language"] = language
    times, words = CLOSED[state]
    subscribed.running.run(CLOSE, *times, subscribed.id)
    event = post(subscribed.api, subscribed.event_type)
    subscribed.wait_for(1)
    words = place.words(words, PORTAL_CLOSED[state])
    chinese = {**WORDS, **PORTAL_WORDS}
    said = words if language == "en" else chinese[words]
    shown = place.page(f"{place.base}/subscriptions/{subscribed.id}")
    assert said in shown.text
    assert "2100-01-01" in shown.body
    assert said in place.page(f"{place.base}/subscriptions?type={subscribed.event_type}").text
    reason = REASONS[state]
    if state == "breaker_open":
        reason = place.words(reason, PORTAL_CLOSED[state])
    assert (reason if language == "en" else chinese[reason]) in place.page(
        f"{place.base}/events/{event}"
    ).text


def test_an_ordered_delivery_names_the_one_before_it(place: Pages, subscribed: Subscribed) -> None:
    target = f"/v1/subscriptions/{subscribed.id}"
    subscribed.api.good("PATCH", target, {"ordered": True, "max_retry_limit": 2, "base_delay_seconds": 3600})

    def sent() -> str:
        body = {"event_type": subscribed.event_type, "payload": 1, "ordering_key": "customer 7"}
        return subscribed.api.post_event(json.dumps(body).encode()).json()["id"]

    def saga_of(event_id: str) -> dict[str, object]:
        return wait_until(
            lambda: subscribed.api.good("GET", f"/v1/events/{event_id}")["sagas"], "a delivery"
        )[0]

    first = sent()
    wait_until(lambda: saga_of(first)["status"] == "PendingRetry", "its first attempt failed")
    second = sent()
    saga_of(second)
    shown = place.page(f"{place.base}/events/{second}").text
    told = "an earlier event of the same key comes first"
    assert place.words("an earlier event of its ordering key comes first", told) in shown
    assert (f"saga {saga_of(first)['id']}" in shown) == (place.base == "/console")
    assert "customer 7" in shown


FORM = {
    "max_in_flight": "20",
    "rate_limit.count": "50",
    "rate_limit.per_seconds": "2.5",
    "max_wait_seconds": "3600",
    "ordered": "yes",
    "circuit_breaker": "no",
}
KEPT = {
    "max_in_flight": 20,
    "rate_limit": {"count": 50, "per_seconds": 2.5},
    "max_wait_seconds": 3600.0,
    "ordered": True,
    "circuit_breaker": False,
}


def selected(shown: Shown, name: str) -> str:
    """The value that a choice has on a page."""
    options = shown.body.split(f'name="{name}"')[1].split("</select>")[0]
    (value,) = re.findall(r'value="(\w+)" selected', options)
    return value


def test_the_form_keeps_the_fields_of_flow_control(place: Pages, subscribed: Subscribed) -> None:
    edit = f"{place.base}/subscriptions/{subscribed.id}/edit"
    usual = {"event_types": subscribed.event_type, "callback_url": REFUSING}
    assert place.post(edit, **usual, **FORM).status == 303
    kept = subscribed.api.good("GET", f"/v1/subscriptions/{subscribed.id}")
    assert {name: kept[name] for name in KEPT} == KEPT
    shown = place.page(edit)
    inputs = {one.get("name"): one.get("value") for tag, one in tags(shown.body) if tag == "input"}
    texts = {name: inputs[name] for name in FORM if name in inputs}
    assert texts == {**{name: FORM[name] for name in texts}, "max_wait_seconds": "3600.0"}
    assert (selected(shown, "ordered"), selected(shown, "circuit_breaker")) == ("yes", "no")
    page = place.page(f"{place.base}/subscriptions/{subscribed.id}").text
    assert "50 per 2.5 s" in page
    told = "events with the same key one after the other, as they happened"
    assert place.words("one at a time for each ordering key", told) in page
    empty = dict.fromkeys(FORM, "") | {"ordered": "no", "circuit_breaker": "yes"}
    assert place.post(edit, **usual, **empty).status == 303
    kept = subscribed.api.good("GET", f"/v1/subscriptions/{subscribed.id}")
    assert [kept[name] for name in KEPT] == [None, None, None, False, True]


def test_a_new_subscription_has_the_defaults_of_the_form(place: Pages, subscribed: Subscribed) -> None:
    shown = place.page(f"{place.base}/subscriptions/new")
    assert (selected(shown, "ordered"), selected(shown, "circuit_breaker")) == ("no", "yes")
    wanted = {"event_types": new_name("form"), "callback_url": REFUSING, "rate_limit.count": "5"}
    assert place.post(f"{place.base}/subscriptions", **wanted).status == 303
    (made,) = subscribed.api.good("GET", f"/v1/subscriptions?event_type={wanted['event_types']}")["items"]
    assert made["rate_limit"] == {"count": 5, "per_seconds": 1.0}
    assert (made["ordered"], made["circuit_breaker"]) == (False, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_in_flight", "1001"),
        ("rate_limit.count", "100001"),
        ("rate_limit.per_seconds", "0.5"),
        ("max_wait_seconds", "59"),
    ],
)
def test_a_refused_field_is_marked_and_kept(
    place: Pages, subscribed: Subscribed, name: str, value: str
) -> None:
    usual = {"event_types": subscribed.event_type, "callback_url": REFUSING, "rate_limit.count": "1"}
    answer = place.post(f"{place.base}/subscriptions/{subscribed.id}/edit", **{**usual, name: value})
    assert answer.status == 422
    (field,) = [one for tag, one in tags(answer.body) if tag == "input" and one.get("aria-invalid")]
    assert (field["name"], field["value"]) == (name, value)
