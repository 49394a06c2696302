"""A user who repeats every call until it is answered, and starts the process again whenever it has died."""

import json
import os
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from tests.api.http_client import Answer
from tests.api.running_system import new_name, wait_until
from tests.e2e.recorder import Recorder
from tests.e2e.up_process import UpProcess
from tests.faults.sabotage import VARIABLE

ANSWER_SECONDS = 20 if VARIABLE in os.environ else 60
"""A product that was broken on purpose may never give the answer."""


class Stubborn:
    """Counts how often the process had to be started again."""

    def __init__(self, up: UpProcess, recorder: Recorder, lease_seconds: float = 2) -> None:
        """Whatever died, its leases are ended after `lease_seconds`, so receivers must be quicker than that."""
        self.up = up
        self.recorder = recorder
        self.lease_seconds = lease_seconds
        self.restarts = 0
        self.secrets: dict[str, str] = {}

    def revive(self) -> None:
        """Start the process again if it died. Leases of the dead are ended at once: a test cannot wait for them."""
        while not self.up.is_alive:
            wait_until(lambda: not self._connections(), "the dead process's connections are gone")
            self.up.end_leases_of_dead_workers()
            self.up.spawn()
            self.restarts += 1
            wait_until(lambda: not self.up.is_alive or self.up.is_ready(), "the process is ready or dead", 60)

    def _connections(self) -> int:
        query = "SELECT count(*) AS n FROM pg_stat_activity WHERE starts_with(application_name, 'hooksaga ')"
        return self.up.rows(query)[0]["n"]

    def call(self, method: str, target: str, content: Any = None, *headers: tuple[str, str]) -> Any:
        """The content of the first answer, whatever dies before it is given."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode() if content else b""

        def answered() -> Answer | None:
            try:
                answer = self.up.api.call(method, target, body, *headers)
            except (OSError, HTTPException):
                self._settle()
                return None
            if answer.status == 503:
                return None
            assert answer.status < 300, (method, target, answer.status, answer.body)
            return answer

        answer = wait_until(answered, f"{method} {target} is answered", ANSWER_SECONDS)
        return answer.json() if answer.body else None

    def _settle(self) -> None:
        """A process that has just been killed may take a moment to be seen as dead."""
        deadline = time.monotonic() + 0.5
        while self.up.is_alive and time.monotonic() < deadline:
            time.sleep(0.01)
        self.revive()

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """The condition's first true answer, whatever dies meanwhile."""

        def holds() -> Any:
            self.revive()
            return condition()

        return wait_until(holds, what, ANSWER_SECONDS)

    def subscribe(self, event_type: str, kind: str, **more: Any) -> tuple[int, str]:
        """A verified subscription, and its path at the receiver."""
        path = f"{kind}/{new_name('fault')}"
        wanted = {"event_type": event_type, "callback_url": self.recorder.url + path, **more}
        created = self.call("POST", "/v1/subscriptions", wanted)
        self.secrets[path] = created["secret"]
        self.recorder.receiver.add_secret(path, created["secret"])
        self.call("POST", f"/v1/subscriptions/{created['id']}/verify")
        return created["id"], path

    def post(self, event_type: str, key: str, payload: bytes = b"{}") -> str:
        """The id of the one event of this key."""
        body = b'{"event_type": "%s", "payload": %s}' % (event_type.encode(), payload)
        return self.call("POST", "/v1/events", body, ("idempotency-key", key))["id"]

    def sagas(self, event_id: str, subscription_id: int) -> list[dict[str, Any]]:
        """Return the sagas of this pair, oldest first."""
        query = """
            SELECT s.id, s.status::text, s.attempt_count, s.final_error_code, d.id AS dead_letter_id
              FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
              LEFT JOIN dead_letters d ON d.saga_id = s.id
             WHERE e.webhook_id = %s::uuid AND s.subscription_id = %s ORDER BY s.id"""
        return self.up.rows(query, [event_id.removeprefix("evt_"), subscription_id])

    def saga_in(self, status: str, event_id: str, subscription_id: int) -> dict[str, Any]:
        """The pair's newest saga, once it is in this state."""

        def found() -> dict[str, Any] | None:
            self.up.end_leases_older_than(self.lease_seconds)
            sagas = self.sagas(event_id, subscription_id)
            return sagas[-1] if sagas and sagas[-1]["status"] == status else None

        return self.until(found, f"a saga of {event_id} is {status}")
