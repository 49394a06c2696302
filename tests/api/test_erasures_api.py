"""Erasures over HTTP: who may, what is answered, and what an erased event looks like afterwards."""

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post


def completed(api: Api, erasure_id: int) -> dict[str, object]:
    def status() -> str:
        return api.good("GET", f"/v1/erasures/{erasure_id}")["status"]

    wait_until(lambda: status() == "Completed", "it is erased")
    return api.good("GET", f"/v1/erasures/{erasure_id}")


def test_an_event_is_erased_and_stays(running: RunningSystem, api: Api) -> None:
    event_id = post(api, new_name("erased"), b'{"name": "Ada"}')
    made = api.good("POST", "/v1/erasures", {"event_id": event_id, "reason": "request 1"})
    assert (made["event_id"], made["reason"], made["created"]) == (event_id, "request 1", True)
    done = completed(api, made["id"])
    assert done["events"] == 1
    event = api.good("GET", f"/v1/events/{event_id}")
    assert (event["payload"], event["is_erased"]) == (None, True)
    assert event["payload_removed_at"] is not None
    assert made["id"] in [one["id"] for one in api.good("GET", "/v1/erasures")["items"]]


def test_a_tenants_key_erases_its_own_tenant_only(running: RunningSystem, api: Api) -> None:
    first, second = new_name("first"), new_name("second")
    theirs = api.with_key(running.new_key(tenant_id=first))
    event_id = post(theirs, new_name("theirs"), b'"private"')
    stranger = api.with_key(running.new_key(tenant_id=second))
    for wanted, code in (
        ({"event_id": event_id, "reason": "r"}, "event_not_found"),
        ({"tenant_id": first, "reason": "r"}, "tenant_not_found"),
    ):
        assert_problem(stranger.post("/v1/erasures", wanted), 404, code)
    made = theirs.good("POST", "/v1/erasures", {"tenant_id": first, "reason": "r"})
    assert completed(theirs, made["id"])["events"] == 1
    assert stranger.get(f"/v1/erasures/{made['id']}").status == 404
