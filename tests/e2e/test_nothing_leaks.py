"""Planted words: in payloads, secrets, addresses, headers and keys. No log and no error answer may repeat them."""

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.tls import Certificates
from tests.api.http_client import Answer, event_body
from tests.api.running_system import wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import KEY, UpProcess

PAYLOAD, QUERY, PATH, HEADER, ANSWER, IDEMPOTENCY, WRONG_KEY = (
    f"canary-{name}-7f3a" for name in ("payload", "query", "path", "header", "answer", "idempotency", "key")
)
FAILING = ("/status/500", "/status/404", "/reset", "/hang")
LOUD = "/ok/loud"
UNAVAILABLE = '"database unavailable"'


def loud_failure(_body: bytes) -> web.Response:
    """A failed delivery whose answer holds the planted word wherever an answer can."""
    headers = {"x-answer": ANSWER, "set-cookie": ANSWER, "location": f"https://127.0.0.1/{ANSWER}"}
    return web.Response(text=ANSWER, status=500, reason=ANSWER, headers=headers)


def spellings(word: str) -> set[str]:
    """The word, and what its middle looks like inside any base64."""
    shifted = (base64.b64encode(bytes(shift) + word.encode()).decode() for shift in range(3))
    return {word, *(text[4 : len(text) // 4 * 4 - 4] for text in shifted)}


@pytest.fixture(scope="module")
def up(certificates: Certificates) -> Iterator[UpProcess]:
    folder = Path(tempfile.mkdtemp(prefix="hooksaga-leaks-"))
    process = UpProcess(
        folder,
        certificates,
        HOOKSAGA_DATABASE_URL=EmbeddedPostgres(folder).start(),  # it would start its own again
        HOOKSAGA_LOG_LEVEL="DEBUG",
        HOOKSAGA_MAX_RETRY_LIMIT="2",
        HOOKSAGA_HTTP_TIMEOUT_SECONDS="1",
        HOOKSAGA_HTTP_CONNECT_TIMEOUT_SECONDS="1",
    )
    process.start()
    yield process
    process.close()
    shutil.rmtree(folder, ignore_errors=True)


class Story:
    """Everything that can go well or wrong, with planted words; the error answers are kept."""

    def __init__(self, up: UpProcess, recorder: Recorder) -> None:
        self.up = up
        self.recorder = recorder
        self.secrets: list[str] = []
        self.refusals: list[Answer] = []

    def tell(self) -> None:
        ids = [self.subscribe(f"{path}/{PATH}") for path in ("/ok", *FAILING, LOUD)]
        self.recorder.script(f"{LOUD}/{PATH}", loud_failure)
        payload = json.dumps({"canary": PAYLOAD}).encode()
        key = ("idempotency-key", IDEMPOTENCY)
        events = [post(self.up.api, "leak", payload, key)]
        self.refuse("POST", "/v1/events", event_body("leak", b'"' + PAYLOAD.encode() + b'"'), key)
        wait_until(lambda: all(self.ended(event_id, len(ids)) for event_id in events), "all have ended")
        for letter in self.up.api.good("GET", "/v1/dead-letters")["items"]:
            self.up.api.good("POST", f"/v1/dead-letters/{letter['id']}/requeue")
        self.break_stored_rows(ids)
        events.append(post(self.up.api, "leak", payload))
        wait_until(lambda: self.ended(events[-1], len(ids)), "all have ended")
        self.refuse_everything(ids[0])
        self.lose_the_database(payload)

    def subscribe(self, path: str) -> int:
        url = f"{self.recorder.url}{path}?token={QUERY}"
        wanted = {"event_type": "leak", "callback_url": url, "headers": {"authorization": f"Bearer {HEADER}"}}
        created = self.up.api.good("POST", "/v1/subscriptions", wanted)
        self.secrets.append(created["secret"])
        self.recorder.script(path, 500)
        self.refuse("POST", f"/v1/subscriptions/{created['id']}/verify", b"")
        self.recorder.script(path, lambda _: web.Response(text=ANSWER))
        self.refuse("POST", f"/v1/subscriptions/{created['id']}/verify", b"")
        del self.recorder.receiver.scripts[path]
        self.up.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
        return created["id"]

    def ended(self, event_id: str, sagas: int) -> bool:
        found = self.up.api.good("GET", f"/v1/events/{event_id}")["sagas"]
        return len(found) >= sagas and all(one["status"] in ("Completed", "DeadLettered") for one in found)

    def break_stored_rows(self, ids: list[int]) -> None:
        """A secret and headers that cannot be used: faults inside the worker, with traces."""
        broken = f"{HEADER} unreadable"
        self.up.rows(
            "UPDATE subscription_secrets SET secret = %s WHERE subscription_id = %s RETURNING id",
            [broken, ids[0]],
        )
        self.up.rows(
            "UPDATE subscriptions SET headers = jsonb_build_object(%s::text, E'a\\r\\nb') WHERE id = %s RETURNING id",
            [HEADER, ids[1]],
        )

    def refuse(self, method: str, target: str, body: bytes, *headers: tuple[str, str]) -> None:
        answer = self.up.api.call(method, target, body, *headers)
        assert answer.status >= 400, answer
        self.refusals.append(answer)

    def refuse_everything(self, subscription_id: int) -> None:
        word = PAYLOAD.encode()
        for body in (
            event_body("leak", b'{"a": "' + word + b'"'),
            event_body("leak", b'"' + word + b'\xff"'),
            event_body(PAYLOAD + " ", b"1"),
            event_body("leak", b'"' + word * 20_000 + b'"'),
            b'{"event_type":"leak","payload":"' + word + b'","tenant_id":"' + word + b' "}',
        ):
            self.refuse("POST", "/v1/events", body)
        for wanted in (
            {"event_type": "leak", "callback_url": f"http://u:{QUERY}@example.com/{PATH}"},
            {"event_type": "leak", "callback_url": f"https://10.0.0.1/{PATH}?{QUERY}"},
            {
                "event_type": "leak",
                "callback_url": "https://example.com/",
                "headers": {"x-a": f"{HEADER}\r\n"},
            },
            {"event_type": "leak", "callback_url": "https://example.com/", "headers": {"host": HEADER}},
            {"event_type": "leak", "callback_url": "https://example.com/", "timeout_seconds": PAYLOAD},
        ):
            self.refuse("POST", "/v1/subscriptions", json.dumps(wanted).encode())
            self.refuse("PATCH", f"/v1/subscriptions/{subscription_id}", json.dumps(wanted).encode())
        self.refuse("POST", "/v1/events", b"{}", ("idempotency-key", f"{IDEMPOTENCY}\t"))
        stranger = self.up.api.with_key(f"hs_{WRONG_KEY}")
        self.refusals.append(stranger.call("POST", "/v1/events", event_body("leak")))
        self.refusals.append(self.up.api.get(f"/v1/events/{PATH}?token={QUERY}"))

    def lose_the_database(self, payload: bytes) -> None:
        """Errors of the database, with whatever it likes to quote."""
        self.up.server.stop()
        self.refuse("POST", "/v1/events", event_body("leak", payload))
        self.refuse("GET", "/healthz", b"")
        wait_until(lambda: UNAVAILABLE in self.up.log.read_text(), "a stage has missed the database")
        self.up.server.start()
        wait_until(
            lambda: self.up.api.post_event(event_body("leak", payload)).status == 202, "the database is back"
        )


@pytest.fixture(scope="module")
def story(up: UpProcess, recorder: Recorder) -> Story:
    story = Story(up, recorder)
    story.tell()
    return story


def logs(up: UpProcess) -> dict[str, str]:
    """Return the logs of the process and the database."""
    return {
        path.name: path.read_text(errors="replace") for path in (up.log, up.folder / "postgres/server.log")
    }


def test_the_planted_words_did_arrive(up: UpProcess, story: Story) -> None:
    """Otherwise their absence would prove nothing."""
    arrived = story.recorder.events(f"/ok/{PATH}")
    assert PAYLOAD.encode() in arrived[0].body
    assert arrived[0].header("authorization") == f"Bearer {HEADER}"
    assert arrived[0].query == f"token={QUERY}"
    stored = {row["response_body"] for row in up.rows("SELECT response_body FROM webhook_delivery_jobs", [])}
    assert ANSWER in stored


def test_nothing_planted_is_in_any_log(up: UpProcess, story: Story) -> None:
    written = logs(up)
    assert '"attempt"' in written["up.log"]
    assert '"saga moved"' in written["up.log"]
    assert '"internal_error"' in written["up.log"]
    assert UNAVAILABLE in written["up.log"]
    words = [PAYLOAD, QUERY, PATH, HEADER, ANSWER, IDEMPOTENCY, WRONG_KEY, KEY]
    words += [secret.removeprefix("whsec_") for secret in story.secrets]
    looked_for = {spelling for word in words for spelling in spellings(word)}
    found = {(name, word) for name, text in written.items() for word in looked_for if word in text}
    assert found == set()


def test_every_entry_of_the_log_is_one_line_of_json(up: UpProcess, story: Story) -> None:
    lines = up.log.read_text().splitlines()
    assert len(lines) > 10
    for line in lines:
        assert {"level", "message", "timestamp"} <= set(json.loads(line)), line


def test_nothing_planted_is_in_any_refusal(story: Story) -> None:
    words = [QUERY, PATH, HEADER, ANSWER, IDEMPOTENCY, WRONG_KEY, KEY, *story.secrets]
    assert len(story.secrets) > 1
    assert len(story.refusals) > 10
    for answer in story.refusals:
        assert answer.status >= 400
        text = answer.body.decode()
        assert [word for word in [*words, PAYLOAD] if word in text] == [], answer


def test_nothing_planted_is_in_the_metrics(up: UpProcess, story: Story) -> None:
    """Nor anything else that tells one event or subscription from another."""
    page = up.api.with_key(None).get("/metrics").body.decode()
    assert "hooksaga_delivery_failed_total" in page
    words = [PAYLOAD, QUERY, PATH, HEADER, ANSWER, IDEMPOTENCY, WRONG_KEY, KEY, "leak", "evt_", "127.0.0.1"]
    words += [secret.removeprefix("whsec_") for secret in story.secrets]
    assert [word for word in words if word in page] == []


def test_no_secret_is_shown_after_creation(up: UpProcess, story: Story) -> None:
    assert len(story.secrets) > 1
    for target in ("/v1/subscriptions", "/v1/dead-letters", "/v1/stats"):
        text = up.api.get(target).body.decode()
        assert [secret for secret in story.secrets if secret in text] == []
