"""The page of erasures: nothing happens unless what is to be erased is typed twice."""

from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post
from tests.console.pages import Pages


def test_an_erasure_needs_a_typed_confirmation(running: RunningSystem, pages: Pages) -> None:
    event_id = post(running.api, new_name("erased"), b'"private"')
    form = {"event_id": event_id, "tenant_id": "", "reason": "request 1"}
    with running.nothing_stored():
        refused = pages.post("/console/erasures", **form, confirmation="yes")
    assert refused.status == 422
    assert "type the event or the tenant once more" in refused.text
    done = pages.post("/console/erasures", **form, confirmation=event_id)
    assert done.headers["location"] == "/console/erasures"
    wait_until(lambda: running.api.good("GET", f"/v1/events/{event_id}")["payload"] is None, "it is erased")
    assert event_id in pages.page("/console/erasures").text
    assert "Erased at" in pages.page(f"/console/events/{event_id}").text
