"""`hooksaga erase` against a running system."""

import json

from tests.cli.conftest import Run, RunJson


def test_an_event_is_erased_and_the_record_says_why(run: Run, run_json: RunJson) -> None:
    sent = run("send", "-", "--json", stdin=b'{"event_type": "test.erased", "payload": "private"}')
    event_id = json.loads(sent.stdout)["id"]
    done = run_json("erase", "--event", event_id, "--reason", "request 7", "--yes")
    assert (done["status"], done["events"], done["reason"]) == ("Completed", 1, "request 7")
    assert run_json("events", "show", event_id)["payload"] is None


def test_it_asks_first(run: Run) -> None:
    refused = run("erase", "--tenant", "nobody", "--reason", "request 8", stdin=b"n\n")
    assert refused.exit_code == 1
    assert "cannot be undone" in refused.stdout + refused.stderr


def test_an_attribute_narrows_the_erasure_of_a_tenant(run: Run, run_json: RunJson) -> None:
    event = b'{"event_type": "test.erased", "payload": "private", "attributes": {"customer": "C-1042"}}'
    event_id = json.loads(run("send", "-", "--json", stdin=event).stdout)["id"]
    wanted = ("--tenant", "default", "--attribute", "customer:C-1042", "--reason", "request 10")
    done = run_json("erase", *wanted, "--yes")
    assert (done["status"], done["events"], done["attribute_name"]) == ("Completed", 1, "customer")
    assert run_json("events", "show", event_id)["is_erased"] is True
    asked = run("erase", *wanted, stdin=b"n\n")
    assert "events of tenant default with customer:C-1042" in asked.stdout + asked.stderr


def test_it_erases_one_of_the_two(run: Run) -> None:
    assert run("erase", "--reason", "r", "--event", "evt_1", "--attribute", "a:b", "--yes").exit_code == 2
    assert run("erase", "--reason", "request 9", "--yes").exit_code == 2
    assert run("erase", "--reason", "r", "--event", "evt_1", "--tenant", "a", "--yes").exit_code == 2
