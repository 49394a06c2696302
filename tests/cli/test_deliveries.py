"""Commands about deliveries: attempts, dead letters, the backlog."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson, RunningSystem
from tests.cli.processes import CommandProcess, wait_until

Subscribed = Callable[[str], dict[str, Any]]
Ended = Callable[[str, str], dict[str, Any]]


@pytest.fixture
def sent_and_ended(run_json: RunJson) -> Ended:
    """Sends an event of the type, and gives it as shown once its one saga has reached the state."""

    def send(event_type: str, state: str) -> dict[str, Any]:
        sent = run_json("send", "-", "--event-type", event_type, stdin=b'{"total": 1.10}')

        def ended() -> dict[str, Any] | None:
            event = run_json("events", "show", sent["id"])
            return event if [saga["status"] for saga in event["sagas"]] == [state] else None

        return wait_until(ended, f"{sent['id']} is {state}")

    return send


@pytest.fixture
def dead_letter(run_json: RunJson, subscribed: Subscribed, sent_and_ended: Ended) -> dict[str, Any]:
    """A dead letter, of an event type of its own."""
    event_type = subscribed("/status/503")["event_type"]
    sent_and_ended(event_type, "DeadLettered")
    (found,) = run_json("dead-letters", "list", "--event-type", event_type)["items"]
    return found


def test_an_event_is_shown_with_its_attempts(run: Run, subscribed: Subscribed, sent_and_ended: Ended) -> None:
    subscription = subscribed("/flaky/1")
    event = sent_and_ended(subscription["event_type"], "Completed")
    shown = run("events", "show", event["id"]).stdout
    first, saga, failed, completed = (line.strip("─│├└ ") for line in shown.strip().splitlines())
    assert first.startswith(f"{event['event_type']}  {event['id']}  accepted 20")
    assert saga.startswith(
        f"subscription {subscription['id']}: Completed, after 2 attempts, last error http_503"
    )
    assert failed.startswith("1. Failed  http_503  ")
    assert completed.startswith("2. Completed  200  ")
    assert " ms  20" in completed


def test_an_event_without_subscriptions_says_so(run: Run, run_json: RunJson) -> None:
    sent = run_json("send", "-", "--event-type", "test.nobody.wants", stdin=b"1")
    assert "no subscription matched" in run("events", "show", sent["id"]).stdout


@pytest.mark.parametrize("wrong", ["evt_1", "../stats", "evt_" + "0" * 32])
def test_an_event_that_is_not_there_is_said(run: Run, wrong: str) -> None:
    result = run("events", "show", wrong)
    assert result.exit_code == 1
    assert "(404)" in result.stderr


def test_a_dead_letter_is_listed_and_shown(run: Run, dead_letter: dict[str, Any]) -> None:
    table = run("dead-letters", "list", "--subscription", str(dead_letter["subscription_id"])).stdout
    assert dead_letter["event_type"] in table
    assert "http_503" in table
    shown = run("dead-letters", "show", str(dead_letter["id"])).stdout
    assert '"total": 1.10' in shown
    assert dead_letter["event_id"] in shown


def test_filters_leave_out_what_does_not_match(run_json: RunJson, dead_letter: dict[str, Any]) -> None:
    of_type = ("dead-letters", "list", "--event-type", dead_letter["event_type"])
    assert run_json(*of_type, "--failed-before", dead_letter["failed_at"])["items"] == []
    assert run_json(*of_type, "--error-code", "http_500")["items"] == []
    assert len(run_json(*of_type, "--failed-after", dead_letter["failed_at"])["items"]) == 1


def test_one_dead_letter_is_requeued_once(run: Run, run_json: RunJson, dead_letter: dict[str, Any]) -> None:
    number = str(dead_letter["id"])
    first = run_json("dead-letters", "requeue", number)
    assert first["saga_id"] != dead_letter["saga_id"]
    assert f"as saga {first['saga_id']}" in run("dead-letters", "requeue", number).stdout


def test_all_that_match_are_requeued(run: Run, run_json: RunJson, dead_letter: dict[str, Any]) -> None:
    of_type = ("dead-letters", "requeue", "--event-type", dead_letter["event_type"])
    assert "1 dead letters match" in run(*of_type, "--dry-run").stdout
    assert run_json(*of_type) == {"matched": 1, "requeued": 1, "skipped": 0, "dry_run": False}
    # Its new saga may have died already, and would match: only what had failed before is asked for again.
    again = (*of_type, "--failed-before", dead_letter["failed_at"].replace("Z", "1Z"))
    assert "0 of 0 requeued" in run(*again).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "999999999"], 1, "dead_letter_not_found (404)"),
        (["requeue", "999999999"], 1, "dead_letter_not_found (404)"),
        (["requeue"], 2, "--all"),
        (["requeue", "1", "--error-code", "http_503"], 2, "not both"),
        (["list", "--failed-after", "yesterday"], 1, "failed_after"),
        (["list", "--limit", "1000"], 2, "250"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], code: int, words: str) -> None:
    result = run("dead-letters", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr


def test_stats_are_shown(run: Run, run_json: RunJson) -> None:
    assert {"outbox", "sagas_due", "dead_letters_24h", "delivered_last_minute"} <= run_json("stats").keys()
    assert "attempts in flight" in run("stats").stdout


def test_watching_goes_on_until_it_is_interrupted(running_system: RunningSystem) -> None:
    arguments = ("stats", "--watch", "--json", "--interval", "0.2")
    process = CommandProcess(running_system.folder, running_system.settings, *arguments)
    try:
        process.wait_for(r"(\{.*\}\n\{.*\}\n)")
        assert process.stop(signal.SIGINT) == 0
    finally:
        process.kill()
    looks = [json.loads(line) for line in process.output.splitlines()]
    assert all("outbox" in look for look in looks)
