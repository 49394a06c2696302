"""Resend and retry now: whose they are, what they refuse, and what the endpoint gets."""

import pytest

from tests.api.http_client import Api, assert_problem
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import dead_letters, post, subscribe


@pytest.fixture
def dead_saga(api: Api, running: RunningSystem, refusing_url: str) -> int:
    """A dead-lettered saga, whose endpoint refuses."""
    kind = new_name("resend")
    subscription = subscribe(running, api, kind, refusing_url)["id"]
    post(api, kind)
    letter = dead_letters(running, subscription, 1)[0]
    return api.good("GET", f"/v1/dead-letters/{letter}")["saga_id"]


@pytest.fixture
def waiting_saga(api: Api, running: RunningSystem, refusing_url: str) -> tuple[int, int]:
    """A saga that waits an hour for its retry, and its subscription."""
    kind = new_name("retry")
    subscription = subscribe(running, api, kind, refusing_url, max_retry_limit=5, base_delay_seconds=3600)
    post(api, kind)

    def waiting() -> int | None:
        rows = running.rows(
            "SELECT id FROM webhook_delivery_sagas WHERE subscription_id = %s AND status = 'PendingRetry'",
            subscription["id"],
        )
        return rows[0]["id"] if rows else None

    return wait_until(waiting, "a saga that waits for its retry"), subscription["id"]


def attempts(running: RunningSystem, saga_id: int) -> int:
    query = "SELECT attempt_count AS made FROM webhook_delivery_sagas WHERE id = %s"
    return running.rows(query, saga_id)[0]["made"]


def test_a_resent_saga_is_delivered_again_and_names_its_origin(
    api: Api, running: RunningSystem, dead_saga: int
) -> None:
    answer = api.post(f"/v1/sagas/{dead_saga}/resend")
    assert (answer.status, answer.json().keys()) == (201, {"saga_id"})
    new = answer.json()["saga_id"]
    wait_until(lambda: attempts(running, new) == 1, "the new saga is tried")
    listed = api.good("GET", "/v1/attempts?limit=1")["items"][0]
    assert (listed["saga_id"], listed["trigger"]) == (new, "requeue")  # its dead letter counts as requeued
    event = api.good("GET", f"/v1/events/{listed['event_id']}")
    assert [(saga["id"], saga["resent_from"]) for saga in event["sagas"]] == [
        (dead_saga, None),
        (new, dead_saga),
    ]
    again = api.post(f"/v1/sagas/{dead_saga}/resend")
    third = again.json()["saga_id"]
    assert (again.status, third > new) == (201, True)
    wait_until(lambda: attempts(running, third) == 1, "the third saga is tried")
    listed = api.good("GET", "/v1/attempts?limit=1")["items"][0]
    shown = api.good("GET", f"/v1/attempts/{listed['id']}")
    assert (shown["trigger"], shown["resent_from"], shown["requeued_from"]) == ("resend", dead_saga, None)
    assert shown["request_headers"]["hooksaga-started-by"] == "resend"
    routing = api.good("GET", f"/v1/events/{listed['event_id']}/routing")
    decisions = [one for one in routing["routing"]["decisions"] if one["saga"]]
    assert decisions[0]["saga"]["started_by"] == "resend"


def test_a_waiting_saga_is_retried_and_not_resent(
    api: Api, running: RunningSystem, waiting_saga: tuple[int, int]
) -> None:
    saga_id, _ = waiting_saga
    assert_problem(api.post(f"/v1/sagas/{saga_id}/resend"), 409, "saga_not_ended")
    answer = api.post(f"/v1/sagas/{saga_id}/retry-now")
    assert (answer.status, answer.json().keys()) == (202, {"saga_id", "waits_for"})
    wait_until(lambda: attempts(running, saga_id) == 2, "the second attempt")


def test_all_of_a_subscription_are_retried(
    api: Api, running: RunningSystem, waiting_saga: tuple[int, int]
) -> None:
    saga_id, subscription = waiting_saga
    answer = api.post(f"/v1/subscriptions/{subscription}/retry-now")
    assert (answer.status, answer.json()) == (202, {"subscription_id": subscription, "retried": 1})
    wait_until(lambda: attempts(running, saga_id) == 2, "the second attempt")


def test_an_ended_saga_and_an_idle_subscription_have_nothing_to_retry(
    api: Api, running: RunningSystem, dead_saga: int
) -> None:
    assert_problem(api.post(f"/v1/sagas/{dead_saga}/retry-now"), 409, "saga_not_waiting")
    query = "SELECT subscription_id AS id FROM webhook_delivery_sagas WHERE id = %s"
    subscription = running.rows(query, dead_saga)[0]["id"]
    assert_problem(api.post(f"/v1/subscriptions/{subscription}/retry-now"), 409, "nothing_waits")


def test_what_belongs_to_another_tenant_is_unknown(
    api: Api, running: RunningSystem, dead_saga: int, waiting_saga: tuple[int, int]
) -> None:
    stranger = api.with_key(running.new_key("admin", tenant_id="other"))
    with running.nothing_stored():
        assert_problem(stranger.post(f"/v1/sagas/{dead_saga}/resend"), 404, "saga_not_found")
        assert_problem(stranger.post(f"/v1/sagas/{waiting_saga[0]}/retry-now"), 404, "saga_not_found")
        missing = stranger.post(f"/v1/subscriptions/{waiting_saga[1]}/retry-now")
        assert_problem(missing, 404, "subscription_not_found")


def test_many_are_resent_by_a_bulk_operation(api: Api, running: RunningSystem, dead_saga: int) -> None:
    query = "SELECT subscription_id AS id FROM webhook_delivery_sagas WHERE id = %s"
    subscription = running.rows(query, dead_saga)[0]["id"]
    chosen = {"subscription_id": subscription, "ended_after": "2020-01-01T00:00:00Z"}
    wanted = {"kind": "resend", "filter": chosen, "rate_per_second": 100}
    assert api.good("POST", "/v1/bulk-operations", {**wanted, "dry_run": True})["matched"] == 1
    operation = api.good("POST", "/v1/bulk-operations", wanted)
    assert (operation["kind"], operation["matched"]) == ("resend", 1)
    dead_letters(running, subscription, 2)


@pytest.mark.parametrize(
    ("chosen", "field", "rule"),
    [
        ({}, None, "ended_after is required in the filter of a resend"),
        (
            {"ended_after": "2020-01-01T00:00:00Z", "since": "2020-01-01T00:00:00Z"},
            None,
            "since is not allowed",
        ),
        ({"ended_after": "2020-01-01T00:00:00Z", "status": "Pending"}, "filter.status", "Completed"),
    ],
)
def test_a_resend_needs_a_time_and_knows_its_own_fields(
    api: Api, chosen: dict[str, str], field: str | None, rule: str
) -> None:
    refused = api.post("/v1/bulk-operations", {"kind": "resend", "filter": chosen})
    assert rule in assert_problem(refused, 422, "invalid_field", field)["detail"]
