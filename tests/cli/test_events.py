"""Events from the command line: list and find."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_system import wait_until
from tests.cli.conftest import Run, RunJson

Subscribed = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def key() -> str:
    return f"ORD-{os.urandom(6).hex()}x"


def attributes(order: str) -> str:
    return json.dumps({"order": order})


def sent(run_json: RunJson, event_type: str, *options: str) -> str:
    return run_json("send", "-", "--event-type", event_type, *options, stdin=b"{}")["id"]


def test_an_event_is_found_by_whatever_names_it(
    run: Run, run_json: RunJson, subscribed: Subscribed, key: str
) -> None:
    """The only match is shown with its deliveries."""
    event_type = subscribed("/ok")["event_type"]
    event = sent(run_json, event_type, "--idempotency-key", key, "--attributes", attributes(f"{key}-1"))
    digits = event.removeprefix("evt_")
    for text in (event, digits, f"evt_{digits[:8]}…{digits[-8:]}", f"...{digits[-8:]}", key, f"{key}-1"):
        found = run("events", "find", text)
        assert found.exit_code == 0, found.output
        assert event in found.stdout, text
        assert "subscription" in found.stdout, "its deliveries are shown"
    assert [one["id"] for one in run_json("events", "find", key)["items"]] == [event]


def test_several_matches_are_listed_and_none_is_an_error(run: Run, run_json: RunJson, key: str) -> None:
    pair = [sent(run_json, "test.pair", "--attributes", attributes(f"{key}-2")) for _ in range(2)]
    found = run("events", "find", f"{key}-2")
    assert [line.split()[0] for line in found.stdout.splitlines()[2:]] == pair[::-1]
    missing = run("events", "find", f"{key}-none")
    assert (missing.exit_code, "no event is named" in missing.stderr) == (1, True)


def test_events_are_listed_by_filters(run: Run, run_json: RunJson, subscribed: Subscribed, key: str) -> None:
    event_type = subscribed("/ok")["event_type"]
    event = sent(run_json, event_type, "--attributes", attributes(f"{key}-3"))

    def listed(*options: str) -> list[str]:
        return [
            one["id"] for one in run_json("events", "list", "--event-type", event_type, *options)["items"]
        ]

    wait_until(lambda: listed("--status", "delivered") == [event], "it is delivered")
    assert listed("--tenant", "default", "--attribute", f"order:{key}-3") == [event]
    assert listed("--tenant", "nobody") == listed("--status", "dead") == []
    line = run("events", "list", "--event-type", event_type).stdout.splitlines()[2]
    assert event in line
    assert "1 completed" in line
    assert run("events", "list", "--status", "late").exit_code == 1


def test_dead_letters_that_were_not_requeued_are_listed(run_json: RunJson, subscribed: Subscribed) -> None:
    subscription = subscribed("/down")
    number = str(subscription["id"])
    sent(run_json, subscription["event_type"])

    def letters(*options: str) -> list[int]:
        return [
            one["id"] for one in run_json("dead-letters", "list", "--subscription", number, *options)["items"]
        ]

    (letter,) = wait_until(letters, "it is a dead letter")
    assert letters("--not-requeued", "--tenant", "default") == [letter]
    run_json("dead-letters", "requeue", str(letter))
    assert letter not in letters("--not-requeued")
