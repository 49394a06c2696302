"""The story that every fault is tried on: everything that a system is asked to do, once."""

from typing import Any

from tests.api.running_system import new_name
from tests.faults.stubborn import Stubborn


def tell_story(user: Stubborn) -> list[int]:
    """How often each delivery arrived: in peace [1, 2, 2, 1]."""
    kind = new_name("story")
    fine, fine_path = user.subscribe(kind, "/ok")
    flaky, flaky_path = user.subscribe(kind, "/flaky/1")
    down, down_path = user.subscribe(kind, "/status/500", max_retry_limit=1)
    slow, _ = user.subscribe(kind, "/status/503", base_delay_seconds=3600)
    event = user.post(kind, new_name("key"), b'{"n": 1.10}')
    user.saga_in("Completed", event, fine)
    user.saga_in("Completed", event, flaky)
    requeue(user, user.saga_in("DeadLettered", event, down))
    user.until(lambda: len(user.sagas(event, down)) == 2, "the requeued saga is there")
    user.saga_in("DeadLettered", event, down)
    waiting = user.saga_in("PendingRetry", event, slow)
    user.call("POST", f"/v1/sagas/{waiting['id']}/cancel")
    assert user.saga_in("DeadLettered", event, slow)["final_error_code"] == "canceled"
    change_subscription(user, fine)
    other = new_name("alone")
    healthy, healthy_path = user.subscribe(other, "/ok")
    alone = user.post(other, new_name("key"), b"{}")
    user.saga_in("Completed", alone, healthy)  # a result that changes no flow, in a batch of its own
    return [
        *(arrivals(user, path, event) for path in (fine_path, flaky_path, down_path)),
        arrivals(user, healthy_path, alone),
    ]


def requeue(user: Stubborn, saga: dict[str, Any]) -> None:
    user.call("POST", f"/v1/dead-letters/{saga['dead_letter_id']}/requeue")


def change_subscription(user: Stubborn, subscription_id: int) -> None:
    target = f"/v1/subscriptions/{subscription_id}"
    user.call("POST", f"{target}/rotate-secret")
    user.call("PATCH", target, {"description": "changed"})
    user.call("DELETE", target)


def arrivals(user: Stubborn, path: str, event_id: str) -> int:
    return sum(one.header("webhook-id") == event_id for one in user.recorder.events(path))


def open_work(user: Stubborn) -> int:
    return user.up.rows(
        "SELECT (SELECT count(*) FROM routing_outbox) + (SELECT count(*) FROM webhook_delivery_sagas "
        "WHERE status NOT IN ('Completed', 'DeadLettered')) AS n"
    )[0]["n"]
