"""Canceling ends what waits, refuses what is under way or over, and tells no tenant of another's."""

import json

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until


@pytest.fixture
def waiting_saga(api: Api, running: RunningSystem, refusing_url: str) -> int:
    """A saga in PendingRetry: its endpoint refuses, and more attempts are left."""
    kind = new_name("cancel")
    wanted = {"event_type": kind, "callback_url": refusing_url, "max_retry_limit": 5, "tenant_id": "acme"}
    created = api.good("POST", "/v1/subscriptions", wanted)
    running.verify_by_hand(created["id"])
    body = json.dumps({"event_type": kind, "payload": {}, "tenant_id": "acme"}).encode()
    assert api.post_event(body).status == 202

    def waiting() -> int | None:
        rows = running.rows(
            "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s AND status = 'PendingRetry'",
            created["id"],
        )
        return rows[0]["id"] if rows else None

    return wait_until(waiting, "a saga that waits for its retry")


def test_a_waiting_saga_becomes_a_dead_letter_that_says_canceled(
    api: Api, running: RunningSystem, waiting_saga: int
) -> None:
    assert api.post(f"/v1/sagas/{waiting_saga}/cancel").status == 202
    query = "SELECT final_error_code FROM dead_letters WHERE saga_id = %s"
    assert running.rows(query, waiting_saga) == [{"final_error_code": "canceled"}]
    again = api.post(f"/v1/sagas/{waiting_saga}/cancel")
    assert (again.status, again.json()) == (200, {"saga_id": waiting_saga, "status": "DeadLettered"})
    assert len(running.rows(query, waiting_saga)) == 1


def test_a_saga_that_has_ended_is_not_canceled(api: Api, running: RunningSystem, waiting_saga: int) -> None:
    running.run("UPDATE webhook_delivery_sagas SET status = 'InProgress' WHERE id = %s", waiting_saga)
    assert_problem(api.post(f"/v1/sagas/{waiting_saga}/cancel"), 409, "saga_not_waiting")


def test_another_tenants_saga_is_as_unknown_as_none(
    api: Api, running: RunningSystem, waiting_saga: int
) -> None:
    stranger = api.with_key(running.new_key("admin", tenant_id="other"))
    foreign = assert_problem(stranger.post(f"/v1/sagas/{waiting_saga}/cancel"), 404, "saga_not_found")
    unknown = assert_problem(stranger.post("/v1/sagas/999999999/cancel"), 404, "saga_not_found")
    assert foreign["detail"].replace(str(waiting_saga), "") == unknown["detail"].replace("999999999", "")
    assert (
        api.with_key(running.new_key("admin", tenant_id="acme"))
        .post(f"/v1/sagas/{waiting_saga}/cancel")
        .status
        == 202
    )


@pytest.mark.parametrize("number", ["0", "x", "-1", "99999999999999999999"])
def test_what_is_no_id_names_no_saga(api: Api, number: str) -> None:
    assert_problem(api.post(f"/v1/sagas/{number}/cancel"), 404, "saga_not_found")
