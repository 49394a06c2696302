"""Payloads that Python's own parser does not take, or would change, are shown everywhere to the byte.

A producer that writes events by SQL meets no check but PostgreSQL's own: any depth, and half of a surrogate pair.
"""

import html
import json
from dataclasses import dataclass

import pytest

from hooksaga.local.raw_json import raw_members
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.cli.conftest import Run, runner_with
from tests.console.pages import Pages

PAYLOADS = {
    "an integer of 4301 digits": '{"n": ' + "9" * 4301 + "}",
    "a negative one of 20000 digits": "-" + "1" * 20_000,
    "a fraction of 5000 digits": '{"n": 0.' + "7" * 5000 + "}",
    "numbers beyond every float": '{"n": [1e999, -1e999, 1e-999]}',
    "spellings of numbers": '{"a": 1.10, "b": 1E3, "c": -0, "d": 12345678901234567890}',
    "names that come twice": '{"a": 1, "a": {"id": 2, "id": 3}, "payload": 4, "payload": 5}',
    "escaped zeros": r'{"a": "\u0000", "\u0000": "\\u0000"}',
    "half of a surrogate pair": r'{"a": "\ud83d", "\udc00": 1}',
    "lists in lists": "[" * 2000 + "]" * 2000,
    "objects in objects": '{"a":' * 1500 + "1" + "}" * 1500,
    "brackets and quotes in texts": r'{"a": "\"}],[{\\", "b": "}"}',
    "blanks and line ends": ' {\r\n\t"b": 1 ,\r\n\t"a" : 2 }\n',
}


@dataclass(frozen=True)
class Dead:
    """An event whose one delivery was given up. payload: as the API shows it, without blanks around it."""

    payload: str
    event_id: str
    dead_letter_id: int


@pytest.fixture(params=PAYLOADS.values(), ids=list(PAYLOADS))
def dead(request: pytest.FixtureRequest, running: RunningSystem, refusing_url: str) -> Dead:
    kind = new_name("odd")
    subscription = running.api.good(
        "POST", "/v1/subscriptions", {"event_type": kind, "callback_url": refusing_url}
    )
    running.verify_by_hand(subscription["id"])
    running.run("INSERT INTO events (event_type, payload) VALUES (%s, %s::json)", kind, request.param)
    found = "SELECT id FROM dead_letters WHERE subscription_id = %s"
    wait_until(lambda: running.rows(found, subscription["id"]), "the delivery is given up")
    (event,) = running.rows("SELECT webhook_id FROM events WHERE event_type = %s", kind)
    (letter,) = running.rows(found, subscription["id"])
    return Dead(request.param, f"evt_{event['webhook_id'].hex}", letter["id"])


@pytest.fixture
def run(running: RunningSystem) -> Run:
    settings = {"HOOKSAGA_API_URL": f"http://127.0.0.1:{running.port}", "HOOKSAGA_API_KEY": running.key or ""}
    return runner_with(settings)


def test_an_odd_payload_is_shown_to_the_byte(running: RunningSystem, run: Run, dead: Dead) -> None:
    shown = running.api.get(f"/v1/events/{dead.event_id}")
    assert shown.body.decode().endswith(f',"payload":{dead.payload}}}')
    letter = running.api.get(f"/v1/dead-letters/{dead.dead_letter_id}")
    assert letter.body.decode().endswith(f',"payload_snapshot":{dead.payload}}}')

    event = run("events", "show", dead.event_id)
    assert (event.exit_code, event.output.count("DeadLettered")) == (0, 1), event.output
    whole = run("events", "show", dead.event_id, "--json")
    assert raw_members(whole.stdout_bytes.decode())["payload"] == dead.payload.strip()

    whole = run("dead-letters", "show", str(dead.dead_letter_id), "--json")
    assert raw_members(whole.stdout_bytes.decode())["payload_snapshot"] == dead.payload.strip()
    for_people = run("dead-letters", "show", str(dead.dead_letter_id))
    assert for_people.exit_code == 0, for_people.output
    assert without_blanks(dead.payload) in without_blanks(for_people.stdout)

    pages = Pages(running.port).signed_in(running.key)
    for path in (f"/console/events/{dead.event_id}", f"/console/dead-letters/{dead.dead_letter_id}"):
        page = pages.get(path)
        assert page.status == 200
        assert without_blanks(dead.payload)[:500] in without_blanks(html.unescape(page.body))


def without_blanks(text: str) -> str:
    return "".join(text.split())


def test_what_the_command_sends_may_be_odd_too(run: Run, running: RunningSystem) -> None:
    """As far as the API takes it: it is as strict about depth and surrogates as it says."""
    for name in ("an integer of 4301 digits", "numbers beyond every float", "names that come twice"):
        sent = run("send", "-", "--event-type", "odd", "--json", stdin=PAYLOADS[name].encode())
        assert sent.exit_code == 0, sent.output
        shown = running.api.get(f"/v1/events/{json.loads(sent.stdout)['id']}")
        assert shown.body.decode().endswith(f'"payload":{PAYLOADS[name]}}}')
    for name, word in (("half of a surrogate pair", "surrogate"), ("lists in lists", "deep")):
        sent = run("send", "-", "--event-type", "odd", stdin=PAYLOADS[name].encode())
        assert sent.exit_code in (1, 2), sent.output
        assert word in sent.output
