"""The life of a subscription, from the command line."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from hooksaga.cli.subscription_view import health_of
from tests.api.running_system import wait_until
from tests.cli.conftest import Run, RunJson, RunningSystem

Subscribed = Callable[[str], dict[str, Any]]


def test_the_secret_is_shown_once(run: Run, running_system: RunningSystem) -> None:
    url = f"{running_system.receiver_url}/ok"
    created = run("subscriptions", "create", "--event-type", "test.secret", "--callback-url", url)
    assert created.exit_code == 0
    assert "whsec_" in created.stdout
    assert "subscriptions verify" in created.stderr
    number = created.stdout.split()[1]
    assert "whsec_" not in run("subscriptions", "show", number).output


def test_what_create_is_told_is_what_is_kept(run_json: RunJson) -> None:
    options = {
        "--event-type": "test.options",
        "--callback-url": "https://receiver.example.com/hook",
        "--description": "the shop",
        "--tenant-id": "acme",
        "--max-retry-limit": "7",
        "--base-delay-seconds": "1.5",
        "--timeout-seconds": "3",
        "--header": "x-shop=a=b",
    }
    arguments = [text for pair in options.items() for text in pair]
    created = run_json("subscriptions", "create", *arguments, "--inactive")
    shown = run_json("subscriptions", "show", str(created["id"]))
    assert shown["tenant_id"] == "acme"
    assert shown["description"] == "the shop"
    assert (shown["max_retry_limit"], shown["base_delay_seconds"], shown["timeout_seconds"]) == (7, 1.5, 3)
    assert shown["headers"] == {"x-shop": "***"}
    assert (shown["active"], shown["verified"]) == (False, False)


def test_verifying_makes_it_active(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    number = str(subscribed("/ok")["id"])
    assert run_json("subscriptions", "show", number)["verified"]
    assert run("subscriptions", "verify", number).exit_code == 0


def test_an_address_that_does_not_answer_the_challenge_is_not_verified(run: Run, run_json: RunJson) -> None:
    wanted = ("--event-type", "test.nobody", "--callback-url", "https://127.0.0.1:1/")
    number = str(run_json("subscriptions", "create", *wanted)["id"])
    result = run("subscriptions", "verify", number)
    assert result.exit_code == 1
    assert "verification_failed (422)" in result.stderr


def test_the_list_pages_and_filters(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    made = [subscribed("/ok") for _ in range(3)]
    first = run_json("subscriptions", "list", "--limit", "2")
    second = run_json("subscriptions", "list", "--limit", "2", "--cursor", first["next"])
    numbers = [one["id"] for one in first["items"] + second["items"]]
    assert numbers[:3] == [one["id"] for one in reversed(made)]
    assert run_json("subscriptions", "list", "--event-type", made[0]["event_type"])["next"] is None
    table = run("subscriptions", "list", "--limit", "1")
    assert made[2]["callback_url"] in table.stdout
    assert "--cursor" in table.stderr


def test_an_update_changes_what_it_names(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    number = str(subscribed("/ok")["id"])
    changes = ("--max-retry-limit", "9", "--header", "a=b", "--inactive", "--description", "changed")
    changed = run_json("subscriptions", "update", number, *changes)
    assert (changed["max_retry_limit"], changed["headers"], changed["active"]) == (9, {"a": "***"}, False)
    more = run_json(
        "subscriptions", "update", number, "--header", "b=c", "--header", "c=d", "--remove-header", "a"
    )
    assert more["headers"] == {"b": "***", "c": "***"}
    shown = run("subscriptions", "show", number).stdout
    assert "b=***, c=***" in shown
    back = run_json("subscriptions", "update", number, "--reset", "max-retry-limit", "--reset", "headers")
    assert (back["max_retry_limit"], back["headers"], back["active"]) == (None, {}, False)
    assert "changed" in run("subscriptions", "update", number, "--active").stdout


def test_several_event_types(run: Run, run_json: RunJson) -> None:
    wanted = (
        "--event-type",
        "test.several.*",
        "--event-type",
        "test.one",
        "--callback-url",
        "https://example.com/",
    )
    made = run_json("subscriptions", "create", *wanted)
    number = str(made["id"])
    assert made["event_types"] == ["test.several.*", "test.one"]
    assert "test.several.*, test.one" in run("subscriptions", "show", number).stdout
    of_type = ("subscriptions", "list", "--event-type", "test.several.now")
    assert [one["id"] for one in run_json(*of_type)["items"]] == [made["id"]]
    assert "test.several.*, test.one" in run(*of_type).stdout
    assert run_json("subscriptions", "update", number, "--event-type", "test.two")["event_types"] == [
        "test.two"
    ]
    assert run_json(*of_type)["items"] == []


def test_a_filter_is_tried_on_recent_events(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    wanted = ("--event-type", "test.filtered")
    for attributes in ('{"country": "DE"}', '{"country": "FR"}', "{}"):
        run_json("send", "-", *wanted, "--attributes", attributes, stdin=b"1")
    made = ("create", *wanted, "--callback-url", "https://receiver.example.com/hook")
    created = run_json("subscriptions", *made, "--filter", '{"country": ["DE"]}')
    assert created["filter"] == {"country": ["DE"]}
    number = str(created["id"])
    shown = run("subscriptions", "match", number, "--last", "3")
    assert 'country ["DE"], the event has "FR"' in shown.stdout
    assert 'country ["DE"], the event has none' in shown.stdout
    assert "the filter matches 1 of 3 events" in shown.stdout
    other = run_json("subscriptions", "match", number, "--filter", '{"country": [{"exists": true}]}')
    assert (other["compared"], other["matched"]) == (3, 2)
    wrong = run("subscriptions", "match", number, "--filter", '{"country": [{"like": "D"}]}')
    assert wrong.exit_code == 1
    assert "filter.country[0].like" in wrong.stderr
    assert run("subscriptions", "match", number, "--filter", "{").exit_code == 2
    assert run_json("subscriptions", "update", number, "--reset", "filter")["filter"] is None
    assert "it matches 3 of 3 events" in run("subscriptions", "match", number).stdout


def test_a_test_event(run: Run, run_json: RunJson, subscribed: Subscribed) -> None:
    one = subscribed("/ok")
    sent = run_json("subscriptions", "test", str(one["id"]), "--payload", '{"x": 1}')
    assert sent["event_type"] == one["event_type"]
    event = run_json("events", "show", sent["id"])
    assert (event["test_subscription_id"], event["payload"]) == (one["id"], {"x": 1})
    assert "test event" in run("events", "show", sent["id"]).stdout
    assert "is accepted" in run("subscriptions", "test", str(one["id"])).stdout
    wrong = run("subscriptions", "test", str(one["id"]), "--payload", "{")
    assert (wrong.exit_code, "not valid JSON" in wrong.stderr) == (2, True)


def test_a_new_address_waits_until_it_is_verified(
    run: Run, run_json: RunJson, subscribed: Subscribed, running_system: RunningSystem
) -> None:
    number = str(subscribed("/ok")["id"])
    new = f"{running_system.receiver_url}/ok/new"
    changed = run_json("subscriptions", "update", number, "--callback-url", new)
    assert changed["pending_callback_url"] == new
    assert "new URL not verified" in run("subscriptions", "list", "--limit", "1").stdout
    assert run_json("subscriptions", "verify", number)["callback_url"] == new


def test_a_deleted_one_is_gone(run: Run, subscribed: Subscribed) -> None:
    number = str(subscribed("/ok")["id"])
    assert "is deleted" in run("subscriptions", "delete", number).stdout
    result = run("subscriptions", "show", number)
    assert result.exit_code == 1
    assert "subscription_not_found (404)" in result.stderr


def test_switching_on_what_was_disabled_offers_what_it_missed(
    run: Run, run_json: RunJson, subscribed: Subscribed
) -> None:
    one = subscribed("/status/410")
    number = str(one["id"])
    event = json.dumps({"event_type": one["event_type"], "payload": {}}).encode()
    run_json("send", "-", stdin=event)
    wait_until(lambda: run_json("subscriptions", "health", number)["disabled_reason"] == "gone", "disabled")
    letters = ("dead-letters", "list", "--subscription", number)
    wait_until(lambda: run_json(*letters)["items"], "its delivery has died")
    run_json("send", "-", stdin=event)
    assert "gone" in run("subscriptions", "health", number).stdout
    result = run("subscriptions", "update", number, "--active")
    assert result.exit_code == 0
    assert (
        f"1 deliveries were dead-lettered meanwhile: hooksaga dead-letters requeue --subscription {number}"
        in result.stderr
    )
    assert f"1 events were accepted meanwhile: hooksaga subscriptions backfill {number}" in result.stderr
    since = result.stderr.split("--failed-after ")[1].split()[0]
    again = run_json("dead-letters", "requeue", "--subscription", number, "--failed-after", since)
    assert again["requeued"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["create", "--event-type", "a", "--callback-url", "http://a.example/"], 1, "invalid_callback_url"),
        (["create", "--event-type", "a"], 2, "--callback-url"),
        (
            ["create", "--event-type", "a", "--callback-url", "https://a.example.com/", "--header", "a"],
            2,
            "NAME=VALUE",
        ),
        (["update", "1"], 2, "nothing to change"),
        (["update", "1", "--max-retry-limit", "0"], 1, "max_retry_limit"),
        (["update", "1", "--reset", "event-type"], 2, "event-type"),
        (["show", "x"], 2, "integer"),
        (["list", "--cursor", "x"], 1, "invalid_cursor"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], code: int, words: str) -> None:
    result = run("subscriptions", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr


def test_a_rotated_secret_is_shown_once(run: Run, subscribed: Subscribed) -> None:
    number = str(subscribed("/ok")["id"])
    rotated = run("subscriptions", "rotate-secret", number, "--overlap-seconds", "60")
    assert rotated.exit_code == 0
    assert "whsec_" in rotated.stdout
    assert "whsec_" not in run("subscriptions", "show", number).output


def test_the_list_has_the_tenant_and_the_health(run: Run, subscribed: Subscribed) -> None:
    number = subscribed("/ok")["id"]
    lines = run("subscriptions", "list", "--tenant", "default").stdout.splitlines()
    assert lines[0].split()[:2] == ["id", "tenant"]
    (line,) = [line for line in lines if line.startswith(f"{number} ")]
    assert ("default" in line, "unknown" in line) == (True, True)
    assert len(run("subscriptions", "list", "--tenant", "nobody").stdout.splitlines()) == 2


def test_a_failing_endpoint_is_shown_with_its_failures() -> None:
    health = {"state": "failing", "consecutive_failures": 2, "last_error_code": "http_503"}
    assert health_of(health) == "failing: 2 failures, http_503"
    assert health_of({**health, "consecutive_failures": 1}) == "failing: 1 failure, http_503"
    assert health_of({**health, "state": "healthy", "consecutive_failures": 0}) == "healthy"
