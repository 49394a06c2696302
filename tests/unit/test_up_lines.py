"""The lines of `hooksaga up` for people: counts now and then, and each failing endpoint with its reason."""

import json
from typing import Any

import pytest

from hooksaga.cli import up_lines
from hooksaga.cli.up_lines import (
    MAX_FAILING,
    REPEAT_SECONDS,
    SUMMARY_SECONDS,
    Digest,
    LogForm,
    UpLines,
    is_text,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def digest(clock: Clock) -> Digest:
    return Digest("http://127.0.0.1:8080/console", clock)


def moved(status: str, subscription: int = 7, **more: Any) -> dict[str, Any]:
    line = {"level": "INFO", "message": "saga moved", "status": status, "subscription_id": subscription}
    return {**line, "attempt_count": 1, **more}


def failed(subscription: int = 7, code: str = "http_503") -> dict[str, Any]:
    return moved("PendingRetry", subscription, error_code=code, next_attempt_at="2026-03-14T09:00:30+00:00")


ROUTED = {"level": "INFO", "message": "event routed", "sagas": 1}


def test_what_is_frequent_is_counted_and_said_now_and_then(digest: Digest, clock: Clock) -> None:
    for line in (ROUTED, ROUTED, moved("Pending"), moved("InProgress"), moved("Completed")):
        assert digest.take(line) == []
    assert digest.due() == "2 accepted, 1 delivered"
    assert digest.due() is None
    digest.take(ROUTED)
    assert digest.due() is None, "it is too early"
    clock.now += SUMMARY_SECONDS
    assert digest.due() == "1 accepted"


def test_a_failing_endpoint_is_named_with_its_reason_once(digest: Digest, clock: Clock) -> None:
    first, address = digest.take(failed())
    assert first.startswith("subscription 7 fails: http_503 (attempt 1, next attempt at ")
    assert address.strip() == "http://127.0.0.1:8080/console/subscriptions/7"
    assert digest.take(failed()) == []
    assert len(digest.take(failed(code="timeout_total"))) == 2
    clock.now += REPEAT_SECONDS
    assert len(digest.take(failed(code="timeout_total"))) == 2
    assert digest.take(failed(subscription=8))[0].startswith("subscription 8 fails")
    assert digest.take(moved("Completed")) == ["subscription 7 works again"]
    assert digest.take(moved("Completed")) == []
    (said, _) = digest.take(moved("DeadLettered", error_code="http_410", dead_letter_id=3))
    assert said == "subscription 7 fails: http_410 (attempt 1, dead letter 3)"


def test_many_failing_endpoints_are_only_counted(digest: Digest) -> None:
    told = [digest.take(failed(subscription=one)) for one in range(MAX_FAILING + 5)]
    assert sum(bool(one) for one in told) == MAX_FAILING
    assert digest.due() == f"{MAX_FAILING + 5:,} failed and waiting for a retry"


def test_warnings_are_said_at_once(digest: Digest) -> None:
    line = {"level": "WARNING", "message": "database unavailable", "loop": "router", "timestamp": "now"}
    assert digest.take(line) == ["database unavailable (loop=router)"]
    assert digest.take({**line, "message": "attempt"}) == []
    assert digest.take({**line, "level": "INFO"}) == []
    assert digest.take({"level": "INFO", "message": "endpoint recovered", "subscription_id": 7}) != []


def test_a_line_that_is_not_ours_is_shown_as_it_is(
    digest: Digest, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = UpLines(digest)
    lines.write("\n".join(["not json \x1b[2J", json.dumps([1]), json.dumps(failed())]) + "\n")
    said = capsys.readouterr().err
    assert "not json \\x1b[2J" in said
    assert "[1]" in said
    assert "subscription 7 fails: http_503" in said


def test_text_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal in (True, False):
        monkeypatch.setattr(up_lines.sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        assert is_text(LogForm.AUTO) is is_terminal
        assert is_text(LogForm.TEXT)
        assert not is_text(LogForm.JSON)
