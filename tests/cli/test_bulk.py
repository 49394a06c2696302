"""Paced requeues and backfills from the command line."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson, RunningSystem
from tests.cli.processes import CommandProcess, wait_until

DeadLetterMaker = Callable[[int], dict[str, Any]]


@pytest.fixture
def dead_letter_maker(run_json: RunJson, subscribed: Callable[[str], dict[str, Any]]) -> DeadLetterMaker:
    """Makes so many dead letters of one event type of their own, and gives the newest."""

    def make(count: int) -> dict[str, Any]:
        event_type = subscribed("/status/503")["event_type"]
        for _ in range(count):
            run_json("send", "-", "--event-type", event_type, stdin=b"1")

        def all_dead() -> list[dict[str, Any]] | None:
            found = run_json("dead-letters", "list", "--event-type", event_type)["items"]
            return found if len(found) == count else None

        return wait_until(all_dead, f"{count} dead letters of {event_type}")[0]

    return make


@pytest.fixture
def dead(dead_letter_maker: DeadLetterMaker) -> dict[str, Any]:
    return dead_letter_maker(1)


def test_a_requeue_at_a_rate_is_followed_to_its_end(run: Run, dead: dict[str, Any]) -> None:
    of_type = ("dead-letters", "requeue", "--where", f"event_type={dead['event_type']}")
    counted = run(*of_type, "--rate", "20", "--dry-run")
    assert (
        "1 dead letters of 1 subscriptions match; at 20 per second this takes at least 0 s" in counted.stdout
    )
    done = run(*of_type, "--rate", "20", "--reason", "it is back")
    assert done.exit_code == 0, done.output
    assert "is Completed: 1 of 1 dead letters started, 0 skipped, at 20 per second" in done.stdout
    listed = run("bulk", "list").stdout
    assert "it is back" in listed
    assert "Completed" in listed


def test_json_is_the_operation_at_its_end(run_json: RunJson, dead: dict[str, Any]) -> None:
    of_type = ("dead-letters", "requeue", "--event-type", dead["event_type"], "--rate", "50")
    assert run_json(*of_type, "--dry-run")["matched"] == 1
    done = run_json(*of_type)
    assert (done["status"], done["done"], done["rate_per_second"]) == ("Completed", 1, 50)


def test_an_operation_is_held_resumed_paced_and_stopped(
    run: Run, run_json: RunJson, dead_letter_maker: DeadLetterMaker
) -> None:
    dead = dead_letter_maker(3)
    started = run_json(
        "dead-letters", "requeue", "--event-type", dead["event_type"], "--rate", "0.01", "--detach"
    )
    number = str(started["id"])
    assert "is Paused" in run("bulk", "pause", number).stdout
    assert "is Running" in run("bulk", "resume", number).stdout
    assert "at 0.02 per second" in run("bulk", "rate", number, "0.02").stdout
    again = run("dead-letters", "requeue", "--event-type", dead["event_type"], "--rate", "5", "--detach")
    assert f"bulk operation {number} " in again.stdout
    assert "is Stopped" in run("bulk", "stop", number).stdout
    shown = run("bulk", "show", number).stdout
    assert f"event_type={dead['event_type']}" in shown
    assert str(dead["subscription_id"]) in shown
    refused = run("bulk", "resume", number)
    assert refused.exit_code == 1
    assert "bulk_operation_ended (409)" in refused.stderr


def test_an_interrupt_ends_the_watching_only(
    running_system: RunningSystem, run_json: RunJson, dead_letter_maker: DeadLetterMaker
) -> None:
    dead = dead_letter_maker(2)
    arguments = ("dead-letters", "requeue", "--event-type", dead["event_type"], "--rate", "0.01")
    started = run_json(*arguments, "--detach")
    process = CommandProcess(running_system.folder, running_system.settings, *arguments)
    try:
        wait_until(lambda: "the same operation exists as" in process.errors, "it is followed")
        assert process.stop(signal.SIGINT) == 0
    finally:
        process.kill()
    assert f"hooksaga bulk watch {started['id']}" in process.errors
    assert run_json("bulk", "show", str(started["id"]))["status"] == "Running"
    run_json("bulk", "stop", str(started["id"]))
    assert run_json("bulk", "watch", str(started["id"]))["status"] == "Stopped"


def test_a_backfill_brings_what_came_before_the_subscription(
    run: Run, run_json: RunJson, running_system: RunningSystem
) -> None:
    event_type = f"test.{os.urandom(8).hex()}"
    for number in range(3):
        run_json("send", "-", "--event-type", event_type, stdin=str(number).encode())
    wanted = ("--event-type", event_type, "--callback-url", running_system.receiver_url + "/ok/backfill")
    subscription = str(run_json("subscriptions", "create", *wanted)["id"])
    since = ("subscriptions", "backfill", subscription, "--since", "2026-01-01T00:00:00Z")
    refused = run(*since, "--dry-run")
    assert "subscription_inactive (409)" in refused.stderr
    run_json("subscriptions", "verify", subscription)
    assert "3 events of 1 subscriptions match" in run(*since, "--dry-run").stdout
    assert "is Completed: 3 of 3 events started" in run(*since, "--rate", "100").stdout
    assert "is Completed: 0 of 0 events started" in run(*since, "--rate", "100").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--where", "colour=red"], "--where must be KEY=VALUE"),
        (["--where", "error_code"], "--where must be KEY=VALUE"),
        (["--where", "subscription=x"], "must be a number"),
        (["--where", "error_code=a", "--error-code", "b"], "given twice"),
        (["--rate", "20"], "--all"),
        (["5", "--rate", "20"], "not both"),
        (["--all", "--rate", "20", "--limit", "5"], "--limit cannot be combined"),
        (["--all", "--rate", "0"], "--rate"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], words: str) -> None:
    result = run("dead-letters", "requeue", *arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
