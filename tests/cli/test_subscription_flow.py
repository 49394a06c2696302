"""Flow control from the command line: its options, pause, resume and flow."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_system import wait_until
from tests.cli.conftest import Run, RunJson

Subscribed = Callable[[str], dict[str, Any]]

OPTIONS = {
    "--max-in-flight": "20",
    "--rate-limit": "50/2.5",
    "--max-wait-seconds": "3600",
}
KEPT = {
    "max_in_flight": 20,
    "rate_limit": {"count": 50, "per_seconds": 2.5},
    "max_wait_seconds": 3600.0,
    "ordered": True,
    "circuit_breaker": False,
}
FLAGS = ("--ordered", "--no-circuit-breaker")


def arguments_of(options: dict[str, str]) -> list[str]:
    return [text for pair in options.items() for text in pair]


def test_create_takes_the_fields_of_flow_control(run: Run, run_json: RunJson) -> None:
    wanted = {"--event-type": "test.flow", "--callback-url": "https://receiver.example.com/", **OPTIONS}
    created = run_json("subscriptions", "create", *arguments_of(wanted), *FLAGS)
    assert {name: created[name] for name in KEPT} == KEPT
    shown = run("subscriptions", "show", str(created["id"])).stdout
    assert "50 per 2.5 s" in shown
    assert "open, 0 of 10 in flight, 0 deliveries wait" in shown


def test_update_changes_and_resets_them(run_json: RunJson, subscribed: Subscribed) -> None:
    number = str(subscribed("/ok")["id"])
    changed = run_json("subscriptions", "update", number, *arguments_of(OPTIONS), *FLAGS)
    assert {name: changed[name] for name in KEPT} == KEPT
    names = ("max-in-flight", "rate-limit", "max-wait-seconds")
    resets = [text for name in names for text in ("--reset", name)]
    back = run_json("subscriptions", "update", number, *resets, "--unordered", "--circuit-breaker")
    assert [back[name] for name in KEPT] == [None, None, None, False, True]


@pytest.mark.parametrize("rate", ["50", "50/", "/1", "a/1", "1.5/1", "50/1/1"])
def test_a_rate_limit_is_a_count_and_seconds(run: Run, subscribed: Subscribed, rate: str) -> None:
    result = run("subscriptions", "update", "1", "--rate-limit", rate)
    assert result.exit_code == 2
    assert "--rate-limit must be COUNT/SECONDS" in result.stderr


def test_the_api_checks_the_bounds(run: Run, subscribed: Subscribed) -> None:
    result = run("subscriptions", "update", str(subscribed("/ok")["id"]), "--rate-limit", "0/1")
    assert result.exit_code == 1
    assert "rate_limit.count" in result.stderr


def test_a_paused_subscription_waits_and_is_resumed(
    run: Run, run_json: RunJson, subscribed: Subscribed
) -> None:
    one = subscribed("/ok")
    number = str(one["id"])
    result = run("subscriptions", "pause", number)
    assert f"subscription {number} is paused since" in result.stdout
    assert "0 deliveries wait" in result.stdout
    assert f"hooksaga subscriptions resume {number}" in result.stderr
    assert "paused" in run("subscriptions", "list", "--limit", "1").stdout
    event = json.dumps({"event_type": one["event_type"], "payload": {}}).encode()
    sent = run_json("send", "-", stdin=event)
    wait_until(lambda: run_json("subscriptions", "flow", number)["waiting"] == 1, "it waits")
    assert "the subscription is paused" in run("explain", sent["id"]).stdout
    shown = run("subscriptions", "flow", number).stdout
    assert "paused: paused" not in shown
    assert "paused" in shown
    assert "1 delivery waits" in run("subscriptions", "pause", number).stdout
    assert f"subscription {number} is not paused" in run("subscriptions", "resume", number).stdout
    wait_until(lambda: "delivered" in run("explain", sent["id"]).stdout, "it is delivered")


def test_a_backlog_can_be_discarded(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    one = subscribed("/ok")
    number = str(one["id"])
    assert run_json("subscriptions", "pause", number)["paused_at"] is not None
    run_json("send", "-", stdin=json.dumps({"event_type": one["event_type"], "payload": {}}).encode())
    wait_until(lambda: run_json("subscriptions", "flow", number)["waiting"] == 1, "it waits")
    assert run_json("subscriptions", "resume", number, "--backlog", "discard")["paused_at"] is None
    letters = ("dead-letters", "list", "--subscription", number)
    (letter,) = wait_until(lambda: run_json(*letters)["items"], "its delivery is a dead letter")
    assert letter["final_error_code"] == "discarded"


def test_an_unknown_backlog_is_wrong_use(run: Run) -> None:
    assert run("subscriptions", "resume", "1", "--backlog", "drop").exit_code == 2


@pytest.mark.parametrize("command", ["pause", "resume", "flow"])
def test_an_unknown_subscription_is_told(run: Run, command: str) -> None:
    result = run("subscriptions", command, "999999")
    assert result.exit_code == 1
    assert "subscription_not_found (404)" in result.stderr
