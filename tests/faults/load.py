"""Producers that post with keys and repeat until they are answered, and what must be true of all they were told."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from hooksaga.local.receiver_journal import Signature
from tests.api.http_client import Answer, event_body
from tests.api.running_system import wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess

DEAD_END = "/status/500"
KINDS = ("/ok", "/slow/60", "/flaky/1", DEAD_END)
"""One subscription for each: deliveries that succeed, take a moment, need a second attempt, and die."""

TIMEOUT_SECONDS = 30


@dataclass
class Told:
    """Responses to callers. hang_ups: connections that broke before a response."""

    accepted: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])
    accepted_at: list[float] = field(default_factory=list[float])
    turned_away: int = 0
    hang_ups: int = 0
    faults: list[object] = field(default_factory=list[object])


class Producer(threading.Thread):
    """Posts one event after the other, each with a key, and repeats a key until it has an answer of 2xx.

    rest_seconds: from one answer to the next event. Its name is the ordering key of its events.
    """

    def __init__(
        self,
        up: UpProcess,
        number: int,
        stopping: threading.Event,
        *,
        event_type: str,
        rest_seconds: float = 0,
    ) -> None:
        super().__init__(name=f"producer {number}")
        self._up = up
        self._number = number
        self._stopping = stopping
        self._event_type = event_type
        self._rest = rest_seconds
        self.told = Told()

    def run(self) -> None:
        told = self.told
        while not self._stopping.is_set():
            key = f"{self._event_type}-{self._number}-{len(told.accepted)}"
            payload = b'{"key": "%s", "n": 1.10}' % key.encode()
            answer = self._until_accepted(key, payload)
            if answer is not None:
                told.accepted[key] = (answer.json()["id"], payload)
                told.accepted_at.append(time.monotonic())
            self._stopping.wait(self._rest)

    def _until_accepted(self, key: str, payload: bytes) -> Answer | None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        body = event_body(self._event_type, payload, ordering_key=self.name)
        header = ("idempotency-key", key)
        while time.monotonic() < deadline:
            answer = self._ask(lambda: self._up.api.post_event(body, header))
            if answer is not None and answer.status in (200, 202):
                return answer
            if answer is not None and answer.status != 503:
                self.told.faults.append(answer)
                return None
            time.sleep(0.02)
        self.told.faults.append(f"never accepted: {key}")
        return None

    def _ask(self, call: Callable[[], Answer]) -> Answer | None:
        try:
            answer = call()
        except (OSError, HTTPException):
            self.told.hang_ups += 1
            return None
        if answer.status == 503:
            self.told.turned_away += 1
            if "retry-after" not in answer.headers:
                self.told.faults.append(answer)
        return answer


def together(producers: list[Producer]) -> Told:
    """Return the sum of all responses; call it after the end."""
    whole = Told()
    for told in (producer.told for producer in producers):
        whole.accepted |= told.accepted
        whole.accepted_at += told.accepted_at
        whole.turned_away += told.turned_away
        whole.hang_ups += told.hang_ups
        whole.faults += told.faults
    whole.accepted_at.sort()
    return whole


def subscribe(
    up: UpProcess, recorder: Recorder, event_type: str, kinds: Sequence[str] = KINDS, **how: object
) -> dict[str, str]:
    """A verified subscription of each kind; their paths by kind. A call that is answered by 503 is repeated."""
    paths = {kind: f"{kind}/{event_type}" for kind in kinds}
    for path in paths.values():
        wanted = {
            "event_type": event_type,
            "callback_url": recorder.url + path,
            "circuit_breaker": False,
            **how,
        }
        created = _answer(up, "/v1/subscriptions", wanted)
        recorder.receiver.add_secret(path, created["secret"])
        _answer(up, f"/v1/subscriptions/{created['id']}/verify")
    return paths


def _answer(up: UpProcess, target: str, content: Any = None) -> Any:
    def answered() -> Answer | None:
        answer = up.api.post(target, content)
        return None if answer.status == 503 else answer

    answer = wait_until(answered, f"POST {target} is answered", TIMEOUT_SECONDS)
    assert answer.status < 300, answer
    return answer.json()


def has_settled(up: UpProcess) -> bool:
    """Return whether every event is routed and every delivery has ended."""
    open_work = up.rows(
        "SELECT (SELECT count(*) FROM routing_outbox) + (SELECT count(*) FROM webhook_delivery_sagas "
        "WHERE status NOT IN ('Completed', 'DeadLettered')) AS n"
    )
    return open_work[0]["n"] == 0


def check_arrivals(recorder: Recorder, paths: dict[str, str], accepted: dict[str, tuple[str, bytes]]) -> None:
    """Everything arrived at every path, with its own payload, well signed, and no event that nobody posted."""
    payloads = dict(accepted.values())
    for path in paths.values():
        arrived = recorder.events(path)
        assert {one.header("webhook-id") for one in arrived} == set(payloads)
        assert all(one.body == payloads[one.header("webhook-id")] for one in arrived)
    assert set(recorder.receiver.journal.signatures) == {Signature.GOOD}
