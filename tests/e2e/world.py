"""The whole system with a receiver, and the few verbs that the stories of these tests are told with."""

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.cli.database import AUDIT_SECONDS
from hooksaga.operations.audit import audit
from tests.api.http_client import Api
from tests.api.running_system import RunningSystem, new_name, wait_until
from tests.api.seeding import post
from tests.e2e.recorder import Arrived, Recorder
from tests.hostile_cases import note

ENDED = ("Completed", "DeadLettered")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Subscriber:
    """A subscription for an event type of its own, at a path of its own."""

    id: int
    event_type: str
    path: str
    secret: str

    @property
    def target(self) -> str:
        return f"/v1/subscriptions/{self.id}"


class World:
    def __init__(self, running: RunningSystem, recorder: Recorder) -> None:
        self.running = running
        self.recorder = recorder
        self.api: Api = running.api

    def new_path(self, kind: str) -> str:
        """A path that fails in its kind's way and belongs to one test."""
        return f"/{kind}/{next(_numbers)}" if "/" in kind else f"/{kind}/n/{next(_numbers)}"

    def subscribe(
        self, kind: str = "ok", *, event_type: str | None = None, verify: bool = True, **more: Any
    ) -> Subscriber:
        """Verified by the real handshake, which every path of the receiver answers."""
        path = self.new_path(kind)
        event_type = event_type or new_name("e2e")
        wanted = {"event_type": event_type, "callback_url": self.recorder.url + path, **more}
        created = self.api.good("POST", "/v1/subscriptions", wanted)
        if verify:
            verified = self.api.good("POST", f"/v1/subscriptions/{created['id']}/verify")
            assert verified["verified"] is True
        return Subscriber(created["id"], event_type, path, created["secret"])

    def post(self, subscriber: Subscriber, payload: bytes = b"{}", *headers: tuple[str, str]) -> str:
        return post(self.api, subscriber.event_type, payload, *headers)

    def sagas(self, event_id: str) -> list[dict[str, Any]]:
        return self.api.good("GET", f"/v1/events/{event_id}")["sagas"]

    def saga_in(self, event_id: str, *statuses: str, seconds: float = 45) -> dict[str, Any]:
        """The event's newest saga, once it is in one of the states."""

        def found() -> dict[str, Any] | None:
            sagas = self.sagas(event_id)
            return sagas[-1] if sagas and sagas[-1]["status"] in statuses else None

        return wait_until(found, f"a saga of {event_id} in {statuses}", seconds)

    def ended(self, event_id: str, seconds: float = 45) -> dict[str, Any]:
        saga = self.saga_in(event_id, *ENDED, seconds=seconds)
        note("delivered" if saga["status"] == "Completed" else saga["final_error_code"])
        return saga

    def dead_letter(self, event_id: str) -> dict[str, Any]:
        """The dead letter of the event's newest saga, once it is dead."""
        saga = self.saga_in(event_id, "DeadLettered")
        letters = self.api.good("GET", f"/v1/dead-letters?subscription_id={saga['subscription_id']}")["items"]
        return next(letter for letter in letters if letter["saga_id"] == saga["id"])

    def requeue(self, event_id: str) -> int:
        """Starts a new saga for the event's dead one."""
        letter = self.dead_letter(event_id)
        return self.api.good("POST", f"/v1/dead-letters/{letter['id']}/requeue")["saga_id"]

    def pass_a_later_event(self) -> None:
        """When this returns, an event accepted after everything before has gone its whole way."""
        later = self.subscribe()
        self.ended(self.post(later))

    def make_due(self, subscriber: Subscriber) -> None:
        """Ends the waits of a subscription's sagas."""
        self.running.run(
            "UPDATE webhook_delivery_sagas SET next_attempt_at = now() WHERE subscription_id = %s "
            "AND status = 'PendingRetry' AND next_attempt_at > now()",
            subscriber.id,
        )

    def assert_audit_finds_nothing(self) -> None:
        assert findings(self.running.database_url) == []


def findings(database_url: str) -> list[str]:
    """Return the audit's findings."""

    async def ask() -> list[str]:
        address = DatabaseAddress(database_url, unit_timeout_seconds=AUDIT_SECONDS)
        session = Session(address, Role.OWNER)
        try:
            return [f"{one.invariant}: {one.rows}" for one in await session.run(audit) if one.rows]
        finally:
            await session.close()

    return asyncio.run(ask())


def assert_signed(arrived: Arrived, secret: str) -> None:
    """A fresh, good signature."""
    arrived.verify(secret)
    assert abs(int(arrived.header("webhook-timestamp")) - arrived.at) <= 2
