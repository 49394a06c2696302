"""Why did my customer not get it? Asked on the command line."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson
from tests.cli.processes import wait_until

Subscribed = Callable[[str], dict[str, Any]]


def explained_once(run_json: RunJson, event_id: str, reached: Callable[[list[Any]], bool]) -> dict[str, Any]:
    def answer() -> dict[str, Any] | None:
        event = run_json("explain", event_id)
        return event if reached(event["routing"]["decisions"]) else None

    return wait_until(answer, f"{event_id} is where it should be")


def test_one_was_delivered_and_one_was_off(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    delivered = subscribed("/flaky/1")
    switched_off = run_json(
        "subscriptions",
        "create",
        "--event-type",
        delivered["event_type"],
        "--callback-url",
        "https://receiver.example.com/",
    )
    event_id = run_json("send", "-", "--event-type", delivered["event_type"], stdin=b"{}")["id"]
    event = explained_once(
        run_json, event_id, lambda found: bool(found) and found[0]["saga"]["status"] == "Completed"
    )
    assert [one["matched"] for one in event["routing"]["decisions"][:2]] == [True, False]
    assert "payload" not in event
    shown = run("explain", event_id).stdout
    assert f"subscription {delivered['id']} ({delivered['event_type']} → 127.0.0.1): " in shown
    assert "delivered on attempt 2 of 2" in shown
    assert f"subscription {switched_off['id']} ({delivered['event_type']} → receiver.example.com): " in shown
    assert "not matched: it was not verified when the event was routed at 20" in shown


def test_all_tells_of_each(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    other = subscribed("/ok")
    event_id = run_json("send", "-", "--event-type", "test.nobody.takes.this", stdin=b"{}")["id"]
    explained_once(run_json, event_id, bool)
    assert "--all lists them" in run("explain", event_id).stdout
    every = run("explain", event_id, "--all").stdout
    assert f"subscription {other['id']} ({other['event_type']} → 127.0.0.1): not matched: it took " in every


@pytest.mark.parametrize("wrong", ["evt_1", "../stats", "evt_" + "0" * 32])
def test_an_event_that_is_not_there_is_said(run: Run, wrong: str) -> None:
    result = run("explain", wrong)
    assert result.exit_code == 1
    assert "(404)" in result.stderr
