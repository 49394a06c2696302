"""Attributes that ingest reads from the payload count like given ones: for filters, explanations and the search."""

from tests.api.http_client import Api
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post, subscribe


def test_filters_explain_and_search_see_them(running: RunningSystem, api: Api, refusing_url: str) -> None:
    event_type, order = new_name("order"), new_name("ORD")
    extracted = [
        {"name": "order_id", "pointer": "/order/id", "kind": "string"},
        {"name": "total", "pointer": "/order/total", "kind": "number"},
    ]
    api.good("PUT", f"/v1/event-types/{event_type}", {"attributes": extracted})
    dear = subscribe(running, api, event_type, refusing_url, filter={"total": [{"numeric": [">", 100]}]})
    mine = subscribe(running, api, event_type, refusing_url, filter={"order_id": [{"suffix": order[-6:]}]})
    event = post(api, event_type, f'{{"order": {{"id": "{order}", "total": 99.5}}}}'.encode())
    wait_until(
        lambda: api.good("GET", f"/v1/events/{event}")["routing"]["state"] == "routed", "the event is routed"
    )
    shown = api.good("GET", f"/v1/events/{event}")
    assert (shown["attributes"], shown["extracted_attributes"]) == ({}, {"order_id": order, "total": 99.5})
    assert [saga["subscription_id"] for saga in shown["sagas"]] == [mine["id"]]
    reasons = {one["subscription_id"]: one["reason"] for one in shown["routing"]["decisions"]}
    assert reasons == {mine["id"]: None, dear["id"]: "filtered"}
    for query in (f"attribute=order_id:{order}", f"search={order}", f"event_type={event_type}"):
        found = api.good("GET", f"/v1/events?{query}")["items"]
        assert [one["id"] for one in found] == [event]
    tried = api.good("POST", f"/v1/subscriptions/{dear['id']}/test-filter", {"filter": {"total": [99.5]}})
    assert [one["matches"] for one in tried["items"]] == [True]
