"""The attempt log, and following it, from the command line."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson, RunningSystem
from tests.cli.processes import CommandProcess, wait_until

Subscribed = Callable[[str], dict[str, Any]]


def send(run_json: RunJson, subscription: dict[str, Any], attempts: int) -> list[dict[str, Any]]:
    """The attempts of a new event, oldest first, once there are so many in all."""
    number = str(subscription["id"])
    run_json("send", "-", "--event-type", subscription["event_type"], stdin=b"{}")

    def tried() -> list[dict[str, Any]] | None:
        items = run_json("attempts", "list", "--subscription", number)["items"]
        return items[::-1] if len(items) == attempts else None

    return wait_until(tried, f"{attempts} attempts")


@pytest.fixture
def flaky(run_json: RunJson, subscribed: Subscribed) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A subscription whose receiver failed once, and its two attempts."""
    subscription = subscribed("/flaky/1")
    return subscription, send(run_json, subscription, 2)


def test_attempts_are_listed(run: Run, flaky: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    subscription, _ = flaky
    of_it = ("attempts", "list", "--subscription", str(subscription["id"]))
    newest, oldest = run(*of_it).stdout.strip().splitlines()[-2:]
    assert subscription["event_type"] in newest
    assert "2/2" in newest
    assert "retry" in newest
    assert " 200 " in newest
    assert "1/2" in oldest
    assert "http_503" in oldest
    first = run(*of_it, "--limit", "1")
    assert "--cursor" in first.stderr


@pytest.mark.parametrize(
    ("filters", "positions"),
    [
        (["--failed"], [0]),
        (["--status-class", "2xx"], [1]),
        (["--status-class", "5xx"], [0]),
        (["--error-code", "http_503"], [0]),
        (["--error-code", "http_500"], []),
    ],
)
def test_filters_leave_out_the_rest(
    run_json: RunJson,
    flaky: tuple[dict[str, Any], list[dict[str, Any]]],
    filters: list[str],
    positions: list[int],
) -> None:
    subscription, attempts = flaky
    found = run_json("attempts", "list", "--event-type", subscription["event_type"], *filters)["items"]
    assert found == [attempts[position] for position in positions]


def test_an_attempt_is_shown_with_its_headers(
    run: Run, flaky: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    _, (failed, _) = flaky
    shown = run("attempts", "show", str(failed["id"])).stdout
    assert "headers sent:\n  content-type: application/json\n" in shown
    assert f"  webhook-id: {failed['event_id']}\n" in shown
    assert "  webhook-signature: ***\n" in shown
    assert "error_code" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "999999999"], 1, "attempt_not_found (404)"),
        (["list", "--status-class", "6xx"], 1, "status_class must be one of"),
        (["list", "--cursor", "x"], 1, "invalid_cursor"),
        (["list", "--limit", "1000"], 2, "250"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], code: int, words: str) -> None:
    result = run("attempts", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr


def test_a_subscription_is_shown_with_how_it_is_doing(
    run: Run, run_json: RunJson, flaky: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    number = str(flaky[0]["id"])
    shown = run("subscriptions", "show", number).stdout
    assert "the last 24 hours\n" in shown
    assert "  success rate   50.0% (1 of 2 attempts)\n" in shown
    assert "  last error     http_503 at 20" in shown
    assert "  backlog        0 pending, 0 in flight, 0 waiting for a retry\n" in shown
    assert "the last hour\n" in run("subscriptions", "show", number, "--window", "1h").stdout
    stats = run_json("subscriptions", "show", number)["stats"]
    assert (stats["completed"], stats["failed"]) == (1, 1)


def test_a_subscription_that_was_never_tried_says_so(run: Run, subscribed: Subscribed) -> None:
    shown = run("subscriptions", "show", str(subscribed("/ok")["id"])).stdout
    assert "  success rate   no attempts\n" in shown
    assert "  last error     none\n" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_events_are_followed_until_the_command_is_stopped(
    run_json: RunJson, running_system: RunningSystem, subscribed: Subscribed, number: int
) -> None:
    subscription = subscribed("/flaky/1")
    arguments = ("events", "tail", "--json", "--subscription", str(subscription["id"]))
    process = CommandProcess(running_system.folder, running_system.settings, *arguments)
    try:
        wait_until(lambda: process.output or send_one(run_json, subscription), "it follows")
        process.wait_for(r'("trigger": ?"retry")')
        assert process.stop(number) == 0
    finally:
        process.kill()
    lines = [json.loads(line) for line in process.output.splitlines()]
    assert len({line["id"] for line in lines}) == len(lines)
    assert {line["subscription_id"] for line in lines} == {subscription["id"]}
    assert process.errors == ""


def send_one(run_json: RunJson, subscription: dict[str, Any]) -> None:
    """Until the follower has come nothing is followed, so another one is sent as long as nothing is seen."""
    run_json("send", "-", "--event-type", subscription["event_type"], stdin=b"{}")


def test_a_line_tells_what_happened(
    run_json: RunJson, running_system: RunningSystem, subscribed: Subscribed
) -> None:
    subscription = subscribed("/status/500")
    arguments = ("events", "tail", "--failed", "--event-type", subscription["event_type"])
    process = CommandProcess(running_system.folder, running_system.settings, *arguments)
    try:
        wait_until(lambda: process.output or send_one(run_json, subscription), "it follows")
        assert process.stop(signal.SIGINT) == 0
    finally:
        process.kill()
    line = process.output.splitlines()[0]
    target = f"{subscription['event_type']} -> subscription {subscription['id']}  attempt "
    assert target in line
    assert "  http_500  " in line
    assert "  evt_" in line
