"""Deliveries from the command line: resend one or many, retry, cancel."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson
from tests.cli.processes import wait_until


@pytest.fixture
def delivered(run_json: RunJson, subscribed: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The Completed saga of an event type of its own."""
    event_type = subscribed("/ok")["event_type"]
    sent = run_json("send", "-", "--event-type", event_type, stdin=b"1")

    def completed() -> dict[str, Any] | None:
        sagas = run_json("events", "show", sent["id"])["sagas"]
        return sagas[0] if [saga["status"] for saga in sagas] == ["Completed"] else None

    saga = wait_until(completed, "delivered")
    return {**saga, "event_id": sent["id"], "event_type": event_type}


def sagas_of(run_json: RunJson, delivered: dict[str, Any]) -> list[dict[str, Any]]:
    return run_json("events", "show", delivered["event_id"])["sagas"]


def test_a_delivered_saga_is_resent(run: Run, run_json: RunJson, delivered: dict[str, Any]) -> None:
    said = run("sagas", "resend", str(delivered["id"])).stdout
    new = sagas_of(run_json, delivered)[1]
    assert said == f"saga {delivered['id']} is resent as saga {new['id']}\n"
    wait_until(lambda: sagas_of(run_json, delivered)[1]["status"] == "Completed", "delivered again")
    shown = run("events", "show", delivered["event_id"]).stdout
    assert f"resent from saga {delivered['id']}" in shown
    assert "resent at" in run("explain", delivered["event_id"]).stdout


def test_many_are_resent_at_a_rate(run: Run, delivered: dict[str, Any]) -> None:
    chosen = ("--ended-after", "2020-01-01T00:00:00Z", "--event-type", delivered["event_type"])
    counted = run("sagas", "resend", *chosen, "--status", "Completed", "--dry-run").stdout
    assert counted.startswith("1 deliveries of 1 subscriptions match")
    done = run("sagas", "resend", *chosen, "--rate", "50")
    assert "(resend) is Completed: 1 of 1 deliveries started" in done.stdout


def test_one_saga_and_a_filter_exclude_each_other(run: Run) -> None:
    for wrong in (("1", "--status", "Completed"), ("1", "--dry-run"), (), ("--event-type", "a")):
        result = run("sagas", "resend", *wrong)
        assert (result.exit_code, result.stdout) == (2, "")


def test_what_has_ended_is_not_retried(run: Run, delivered: dict[str, Any]) -> None:
    result = run("sagas", "retry-now", str(delivered["id"]))
    assert result.exit_code == 1
    assert "saga_not_waiting (409)" in result.stderr
    result = run("subscriptions", "retry-now", str(delivered["subscription_id"]))
    assert result.exit_code == 1
    assert "nothing_waits (409)" in result.stderr


def test_a_waiting_saga_is_retried(
    run: Run, run_json: RunJson, subscribed: Callable[[str], dict[str, Any]]
) -> None:
    subscription = subscribed("/flaky/1")
    run("subscriptions", "update", str(subscription["id"]), "--base-delay-seconds", "3600")
    sent = run_json("send", "-", "--event-type", subscription["event_type"], stdin=b"1")

    def saga(status: str) -> Any:
        sagas = run_json("events", "show", sent["id"])["sagas"]
        return sagas[0] if [one["status"] for one in sagas] == [status] else None

    waiting = wait_until(lambda: saga("PendingRetry"), "it waits for its retry")
    assert run("sagas", "retry-now", str(waiting["id"])).stdout == f"saga {waiting['id']} is due now\n"
    wait_until(lambda: saga("Completed"), "delivered")


def test_canceling_what_is_not_there_says_so(run: Run) -> None:
    result = run("sagas", "cancel", "999999999")
    assert result.exit_code == 1
    assert "saga_not_found (404)" in result.stderr
