"""An endpoint that is gone, or fails for days: switched off, and told to whoever asked, through hooksaga itself."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.api.running_system import wait_until
from tests.database.passing_time import MOVES
from tests.e2e.recorder import Arrived
from tests.e2e.world import Subscriber, World, assert_signed

FAILING, DISABLED, DEAD_LETTERED = (
    f"hooksaga.{name}" for name in ("subscription.failing", "subscription.disabled", "delivery.dead_lettered")
)

NUDGE_SECONDS = 5


@pytest.fixture(scope="module")
def settings() -> dict[str, object]:
    return {"disable_after_days": 2, "breaker_failures": 1000}


def about(world: World, watcher: Subscriber, subscriber: Subscriber, how_many: int = 1) -> list[Arrived]:
    """Wait for this many events about the subscriber, and return them. One delivery more each few seconds wakes the
    monitor, which may have looked just before the test moved the time."""
    next_post = time.monotonic() + NUDGE_SECONDS

    def found() -> list[Arrived]:
        nonlocal next_post
        if time.monotonic() > next_post:
            next_post += NUDGE_SECONDS
            world.post(subscriber)
        return [
            one
            for one in world.recorder.events(watcher.path)
            if data_of(one)["subscription_id"] == subscriber.id
        ]

    return wait_until(lambda: got if len(got := found()) >= how_many else [], "an operational event")


def data_of(arrived: Arrived) -> dict[str, Any]:
    return json.loads(arrived.body)["data"]


def pass_time(world: World, **time: float) -> None:
    with world.running.database.transaction():
        world.running.run("SET LOCAL session_replication_role = replica")
        for statement in MOVES:
            world.running.database.execute(statement, {"time": timedelta(**time)})


def health(world: World, subscriber: Subscriber) -> dict[str, Any]:
    return world.api.good("GET", f"{subscriber.target}/health")


def test_an_endpoint_that_says_gone_is_switched_off_and_told(world: World) -> None:
    watcher, gone = world.subscribe(event_type=DISABLED), world.subscribe("status/410")
    event_id = world.post(gone, b'{"card": "secret"}')
    (told,) = about(world, watcher, gone)
    assert_signed(told, watcher.secret)
    assert told.header("hooksaga-event-type") == DISABLED
    content = json.loads(told.body)
    assert (content["type"], content["data"]["reason"], content["data"]["error_code"]) == (
        DISABLED,
        "gone",
        "http_410",
    )
    assert content["data"]["callback_host"] == "127.0.0.1"
    assert gone.path.encode() not in told.body
    assert b"secret" not in told.body
    assert world.api.good("GET", gone.target)["active"] is False
    assert health(world, gone)["disabled_reason"] == "gone"
    assert world.ended(event_id)["final_error_code"] == "http_410"
    letter = world.dead_letter(event_id)
    assert letter["final_error_code"] == "http_410"
    assert letter["reason"].startswith(
        "no further attempt was made: the endpoint answered 410 Gone, and the subscription was disabled at 2"
    )


def test_a_dead_letter_is_told_and_can_be_requeued_by_its_id(world: World) -> None:
    watcher, dying = world.subscribe(event_type=DEAD_LETTERED), world.subscribe("down")
    event_id = world.post(dying)
    (told,) = about(world, watcher, dying)
    assert_signed(told, watcher.secret)
    data = data_of(told)
    assert (data["event_id"], data["event_type"], data["attempts"]) == (event_id, dying.event_type, 3)
    world.recorder.receiver.fix(dying.path)
    world.api.good("POST", f"/v1/dead-letters/{data['dead_letter_id']}/requeue")
    assert world.saga_in(event_id, "Completed")["attempt_count"] == 1


def test_a_failing_subscriber_of_operational_events_makes_no_more_of_them(world: World) -> None:
    deaf = world.subscribe("status/503", event_type=DEAD_LETTERED)
    dying = world.subscribe("status/500")
    world.post(dying)
    query = "SELECT count(*) AS n FROM dead_letters WHERE subscription_id = %s"
    wait_until(lambda: world.running.rows(query, deaf.id)[0]["n"] >= 1, "the news itself has died")
    before = world.running.rows("SELECT count(*) AS n FROM events WHERE source = 'hooksaga'")[0]["n"]
    world.pass_a_later_event()
    assert world.running.rows("SELECT FROM operational_outbox") == []
    assert world.running.rows("SELECT count(*) AS n FROM events WHERE source = 'hooksaga'")[0]["n"] == before
    world.api.call("DELETE", deaf.target)


def test_days_of_nothing_but_failure_are_warned_of_and_then_end_it(world: World) -> None:
    warned, ended = world.subscribe(event_type=FAILING), world.subscribe(event_type=DISABLED)
    failing = world.subscribe("status/500")
    for event_id in [world.post(failing) for _ in range(4)]:
        world.ended(event_id)

    def next_day(**time: float) -> None:
        """Time passes, and one more delivery fails, which wakes the monitor."""
        pass_time(world, **time)
        world.ended(world.post(failing))

    next_day(days=0.75)
    next_day(days=0.5)
    (first,) = about(world, warned, failing)
    next_day(days=0.6)
    assert [data_of(one)["percent"] for one in about(world, warned, failing, 2)] == [50, 90]
    assert_signed(first, warned.secret)
    pass_time(world, days=0.2)
    world.post(failing)
    (told,) = about(world, ended, failing)
    assert (data_of(told)["reason"], data_of(told)["error_code"]) == ("failing", "http_500")
    assert world.api.good("GET", failing.target)["active"] is False
    back = world.api.good("PATCH", failing.target, {"active": True})
    assert back["missed"]["dead_letters"] >= 7
    assert health(world, failing)["consecutive_failures"] == 0
