"""Events from files: what is posted is what the file holds."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, RunJson

SAMPLES = Path(__file__).resolve().parents[2] / "events-samples" / "ingest"
EVENT = b'{"event_type": "test.sent", "payload": {"total":  1.10, "id": 12345678901234567890}}\n'


@pytest.fixture
def event_file(tmp_path: Path) -> Path:
    path = tmp_path / "event.json"
    path.write_bytes(EVENT)
    return path


def payload_text(run: Run, event_id: str) -> str:
    """The payload as the API shows it, to the byte."""
    text = run("events", "show", event_id, "--json").stdout
    return text[text.index('"payload":') + len('"payload":') : text.rindex("}")]


def test_a_file_is_sent_to_the_byte(run: Run, run_json: RunJson, event_file: Path) -> None:
    answer = run_json("send", str(event_file))
    assert answer["event_type"] == "test.sent"
    assert payload_text(run, answer["id"]) == '{"total":  1.10, "id": 12345678901234567890}'


def test_standard_input_is_sent(run: Run) -> None:
    result = run("send", "-", stdin=EVENT)
    assert result.exit_code == 0
    assert result.stdout.startswith("evt_")
    assert result.stdout.endswith(" test.sent\n")


def test_a_bare_payload_is_wrapped_and_stays_as_it_is(run: Run, run_json: RunJson) -> None:
    answer = run_json("send", "-", "--event-type", "test.bare", stdin=b'[1.10, "\\u0000"]')
    assert payload_text(run, answer["id"]).strip() == '[1.10, "\\u0000"]'


def test_a_bare_payload_may_have_an_ordering_key(run_json: RunJson) -> None:
    wanted = ("--event-type", "test.sent", "--ordering-key", "customer 7")
    sent = run_json("send", "-", *wanted, stdin=b"1.10")
    shown = run_json("events", "show", sent["id"])
    assert (shown["ordering_key"], shown["payload"]) == ("customer 7", 1.10)


def test_a_bare_payload_may_have_attributes(run: Run, run_json: RunJson) -> None:
    wanted = ("--event-type", "test.sent", "--attributes", '{"order_id": "A-1", "total": 1.10}')
    sent = run_json("send", "-", *wanted, stdin=b"1.10")
    assert run_json("events", "show", sent["id"])["attributes"] == {"order_id": "A-1", "total": 1.10}
    assert 'order_id="A-1"' in run("events", "show", sent["id"]).stdout


def test_a_repeat_with_the_same_key_is_told(run: Run, event_file: Path) -> None:
    key = os.urandom(8).hex()
    first, second = (run("send", str(event_file), "--idempotency-key", key) for _ in range(2))
    assert first.stdout.split()[0] == second.stdout.split()[0]
    assert "accepted before" in second.stdout
    assert "accepted before" not in first.stdout


def test_the_samples_are_sent_with_their_keys(run: Run, run_json: RunJson) -> None:
    sample = SAMPLES / "api_gateway.order_created.json"
    first, second = (run_json("send", str(sample)) for _ in range(2))
    assert (first["id"], second["duplicate"]) == (second["id"], True)
    assert '"total": 1.10, "currency": "EUR",  "lines"' in payload_text(run, first["id"])


def test_a_base64_body_of_a_gateway_is_decoded(run_json: RunJson) -> None:
    request = {"httpMethod": "POST", "body": base64.b64encode(EVENT).decode(), "isBase64Encoded": True}
    assert run_json("send", "-", stdin=json.dumps(request).encode())["event_type"] == "test.sent"


def test_several_files_give_a_line_each(run: Run, event_file: Path) -> None:
    result = run("send", *[str(event_file)] * 3, "--json")
    assert len({json.loads(line)["id"] for line in result.stdout.splitlines()}) == 3


def test_one_refused_file_does_not_keep_the_others_back(run: Run, event_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"event_type": ""}')
    result = run("send", str(bad), str(event_file))
    assert result.exit_code == 1
    assert "test.sent" in result.stdout
    assert "bad.json: invalid_event (422)" in result.stderr
    assert "1 of 2 events were refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [
        (["-"], b"no json", 1, "invalid_json (400)"),
        (["-"], b"\xff\xfe", 1, "body_not_utf8 (400)"),
        (["-"], b'{"event_type": "a b", "payload": 1}', 1, "invalid_event_type (422): event_type"),
        (["-", "--ordering-key", "a"], b'{"event_type": "a", "payload": 1}', 2, "goes with --event-type"),
        (["-", "--attributes", "{}"], b'{"event_type": "a", "payload": 1}', 2, "goes with --event-type"),
        (
            ["-", "--event-type", "a", "--attributes", "{}, 1"],
            b"1",
            2,
            "--attributes: the body is not valid JSON",
        ),
        (["-", "--event-type", "a", "--attributes", '{"b": []}'], b"1", 1, "attributes.b: must be a string"),
        (["-", "--event-type", "test.bare"], b'{"a"', 2, "is not JSON"),
        (["-", "--idempotency-key", "käse"], EVENT, 2, "printable ASCII"),
        (["-", "-", "--idempotency-key", "k"], EVENT, 2, "one by one"),
        (
            ["-"],
            b'{"httpMethod": "POST", "isBase64Encoded": true, "body": "%%"}',
            2,
            "marks its body as base64",
        ),
        (["/nowhere.json"], b"", 2, "cannot read /nowhere.json: No such file"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], stdin: bytes, code: int, words: str) -> None:
    result = run("send", *arguments, stdin=stdin)
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_an_api_that_is_not_there_is_said_with_what_to_do(run: Run) -> None:
    result = run("send", "-", stdin=EVENT, HOOKSAGA_API_URL="http://127.0.0.1:1", HOOKSAGA_API_KEY="hs_any")
    assert result.exit_code == 1
    assert "no answer from http://127.0.0.1:1" in result.stderr
    assert "hooksaga up" in result.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"HOOKSAGA_API_KEY": "hs_wrong"}, "unauthorized (401)"),
        ({"HOOKSAGA_API_KEY": "hs_\u20ac"}, "characters that are not allowed"),
        ({"HOOKSAGA_API_URL": "https://api.example"}, "this API requires a key"),
        ({"HOOKSAGA_API_URL": "127.0.0.1:8080"}, "must be a URL such as"),
        ({"HOOKSAGA_DATA_DIR": "/nowhere"}, "/nowhere/api_key contains no key"),
    ],
)
def test_a_wrong_key_or_url_ends_with_2(run: Run, settings: dict[str, str], words: str) -> None:
    result = run("send", "-", stdin=EVENT, **settings)
    assert result.exit_code == 2
    assert words in result.stderr


def test_another_kind_of_server_is_recognised(run: Run, some_other_server: str) -> None:
    result = run("stats", HOOKSAGA_API_URL=some_other_server)
    assert result.exit_code == 1
    assert "is not a hooksaga API" in result.stderr


@pytest.fixture
def some_other_server() -> Any:
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Hello(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            return

    with HTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
