"""Bodies of a size, and rows that only the whole system can make, made by it."""

from typing import Any

from tests.api.http_client import Api, event_body
from tests.api.running_system import RunningSystem, wait_until

LIMIT = 262_144
"""Bytes that a body may have."""


GOOD = {"event_type": "order.created", "callback_url": "https://example.com/hook"}


def create(api: Api, **more: Any) -> dict[str, Any]:
    """A subscription that is not verified, with the secret."""
    return api.good("POST", "/v1/subscriptions", {**GOOD, **more})


def subscribe(running: RunningSystem, api: Api, event_type: str, url: str, **more: Any) -> dict[str, Any]:
    """An active subscription whose verification is taken as done."""
    wanted = {"event_type": event_type, "callback_url": url, **more}
    created = api.good("POST", "/v1/subscriptions", wanted)
    running.verify_by_hand(created["id"])
    return created


def post(api: Api, event_type: str, payload: bytes = b"{}", *headers: tuple[str, str]) -> str:
    """The id of a new event of the caller's tenant."""
    answer = api.post_event(event_body(event_type, payload), *headers)
    assert answer.status == 202, answer
    return answer.json()["id"]


def dead_letters(running: RunningSystem, subscription_id: int, how_many: int) -> list[int]:
    """Ids of a subscription's dead letters, newest first, once there are so many."""
    query = "SELECT id FROM dead_letters WHERE subscription_id = %s ORDER BY id DESC"

    def found() -> list[int]:
        ids = [row["id"] for row in running.rows(query, subscription_id)]
        return ids if len(ids) >= how_many else []

    return wait_until(found, f"{how_many} dead letters")


def body_of(size: int, filling: bytes) -> bytes:
    """An event of exactly this many bytes, made of the filling as far as it goes."""
    start, end = b'{"event_type":"big","payload":"', b'"}'
    room = size - len(start) - len(end)
    return start + filling * (room // len(filling)) + b"a" * (room % len(filling)) + end
