"""The log tells of each attempt what really happened on the wire, and nothing that only the receiver may know."""

import json
from typing import Any

from aiohttp import web

from hooksaga.core.attempts import MASK
from tests.api.running_system import wait_until
from tests.e2e.world import Subscriber, World

CANARY = "canary-attempts-51c2"
SECRETS = {"authorization": f"Bearer {CANARY}", "x-shop-key": CANARY}
TRANSPORT = {"host", "content-length", "user-agent", "connection"}
"""Set by the client, or left out of the log because they name a version."""


def delivered(world: World, kind: str, **more: Any) -> tuple[Subscriber, str]:
    """A subscriber with secret headers, and its one event, which has reached it."""
    subscriber = world.subscribe(kind, headers=SECRETS, **more)
    event_id = world.post(subscriber)
    world.saga_in(event_id, "Completed")
    return subscriber, event_id


def logged(world: World, subscriber: Subscriber, query: str = "") -> list[dict[str, Any]]:
    """Oldest first."""
    page = world.api.good("GET", f"/v1/attempts?subscription_id={subscriber.id}{query}")
    return page["items"][::-1]


def test_each_attempt_says_why_it_was_made_and_how_it_ended(world: World) -> None:
    subscriber, event_id = delivered(world, "flaky/1")
    first, second = logged(world, subscriber)
    assert [one["event_id"] for one in (first, second)] == [event_id] * 2
    assert [(one["trigger"], one["attempt_number"], one["max_attempts"]) for one in (first, second)] == [
        ("first", 1, 3),
        ("retry", 2, 3),
    ]
    assert [(one["response_status"], one["error_code"]) for one in (first, second)] == [
        (503, "http_503"),
        (200, None),
    ]
    assert logged(world, subscriber, "&status_class=5xx") == [first]
    assert logged(world, subscriber, "&outcome=completed") == [second]


def test_the_headers_are_those_that_arrived(world: World) -> None:
    subscriber, _ = delivered(world, "ok")
    (arrived,) = world.recorder.events(subscriber.path)
    (attempt,) = logged(world, subscriber)
    told = world.api.good("GET", f"/v1/attempts/{attempt['id']}")["request_headers"]
    assert set(told) == {name for name, _ in arrived.headers} - TRANSPORT
    masked = {name for name, value in told.items() if value == MASK}
    assert masked == {"webhook-signature", *SECRETS}
    for name in told.keys() - masked:
        assert arrived.header(name) == told[name]
    assert arrived.header("x-shop-key") == CANARY


def test_no_answer_of_the_log_holds_a_secret(world: World) -> None:
    feed = world.api.good("GET", "/v1/attempts/follow")
    subscriber, event_id = delivered(world, "ok")
    (attempt,) = logged(world, subscriber)
    answers = {
        target: world.api.get(target).body.decode()
        for target in (
            f"/v1/attempts?subscription_id={subscriber.id}",
            f"/v1/attempts/{attempt['id']}",
            f"/v1/attempts/follow?cursor={feed['next']}",
            f"/v1/events/{event_id}",
            f"/v1/subscriptions/{subscriber.id}/stats",
        )
    }
    (arrived,) = world.recorder.events(subscriber.path)
    secrets = (CANARY, subscriber.secret, arrived.header("webhook-signature"))
    assert event_id in answers[f"/v1/attempts/follow?cursor={feed['next']}"]
    assert [target for target, text in answers.items() for secret in secrets if secret in text] == []


def test_nothing_secret_of_a_header_is_kept_with_the_attempt(world: World) -> None:
    """Not in the database either: its rows outlive the subscription's headers."""
    subscriber, _ = delivered(world, "ok")
    rows = world.running.rows(
        "SELECT to_json(j)::text AS row FROM webhook_delivery_jobs j WHERE subscription_id = %s",
        subscriber.id,
    )
    assert [row["row"] for row in rows if CANARY in row["row"]] == []
    assert json.loads(rows[0]["row"])["own_header_names"].split() == ["x-shop-key", "authorization"]


def test_the_answers_beginning_is_kept(world: World) -> None:
    subscriber = world.subscribe()
    world.recorder.script(subscriber.path, lambda _: web.Response(text="a" * 40_000))
    world.saga_in(world.post(subscriber), "Completed")
    (attempt,) = logged(world, subscriber)
    whole = world.api.good("GET", f"/v1/attempts/{attempt['id']}")
    assert (whole["response_body"], whole["response_truncated"]) == ("a" * 16_384, True)


def test_the_stats_follow_what_happens(world: World) -> None:
    subscriber = world.subscribe("down", base_delay_seconds=60.0)
    world.post(subscriber)

    def failed_once() -> dict[str, Any] | None:
        stats = world.api.good("GET", f"/v1/subscriptions/{subscriber.id}/stats?window=1h")
        return stats if stats["backlog"]["waiting_retry"] else None

    stats = wait_until(failed_once, "the first attempt has failed")
    assert (stats["completed"], stats["failed"], stats["success_rate"]) == (0, 1, 0)
    assert stats["last_error"]["code"] == "http_503"
    assert stats["next_retry_at"] > stats["last_error"]["at"]
    assert stats["latency_ms"]["p50"] <= stats["latency_ms"]["p99"]
