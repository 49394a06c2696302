"""Receivers that are down, hang, redirect or set cookies: the right word, no harm, and recovery."""

import json

import pytest
from aiohttp import web

from tests.api.http_client import assert_problem
from tests.e2e.world import World

FAILING = {
    "status/400": "http_400",
    "status/404": "http_404",
    "status/410": "http_410",
    "status/429": "http_429",
    "status/500": "http_500",
    "status/599": "http_599",
    "reset": "connection_reset",
    "hang": "timeout_total",
}


@pytest.fixture(scope="module")
def failed(world: World) -> dict[str, str]:
    """One event for each way to fail, all at the same time."""
    return {kind: world.post(world.subscribe(kind, max_retry_limit=1)) for kind in FAILING}


@pytest.mark.hostile("Receivers, through the whole system")
@pytest.mark.parametrize("kind", FAILING)
def test_each_way_to_fail_has_its_word(world: World, failed: dict[str, str], kind: str) -> None:
    saga = world.ended(failed[kind])
    assert (saga["status"], saga["final_error_code"]) == ("DeadLettered", FAILING[kind])
    attempt = saga["attempts"][0]
    status = int(kind.split("/")[1]) if kind.startswith("status") else None
    assert attempt["response_status"] == status
    assert attempt["resolved_ip"] == "127.0.0.1"


REDIRECTS = (300, 301, 302, 303, 307, 308)


@pytest.fixture(scope="module")
def redirected(world: World) -> dict[int, str]:
    return {
        status: world.post(world.subscribe(f"status/{status}", max_retry_limit=1)) for status in REDIRECTS
    }


@pytest.mark.hostile("Receivers, through the whole system")
@pytest.mark.parametrize("status", REDIRECTS)
def test_redirects_are_not_followed(world: World, redirected: dict[int, str], status: int) -> None:
    """The receiver redirects to its own /ok, where a follower would show up."""
    saga = world.ended(redirected[status])
    assert saga["final_error_code"] == f"http_{status}"
    assert saga["attempts"][0]["response_status"] == status
    assert [one for one in world.recorder.receiver.arrived if one.path == "/ok"] == []


@pytest.mark.hostile("The verification handshake")
def test_redirects_are_not_followed_by_the_handshake(world: World) -> None:
    subscriber = world.subscribe(verify=False)
    target = world.new_path("ok")
    for status in REDIRECTS:
        world.recorder.script(
            subscriber.path,
            lambda _body, status=status: web.Response(
                status=status, headers={"location": world.recorder.url + target}
            ),
        )
        problem = assert_problem(
            world.api.post(f"{subscriber.target}/verify"), 422, "verification_failed", "callback_url"
        )
        assert f"http_{status}" in problem["detail"]
    assert [one for one in world.recorder.receiver.arrived if one.path == target] == []


@pytest.mark.hostile("Receivers, through the whole system")
def test_a_cookie_is_never_sent_back(world: World) -> None:
    first, second = world.subscribe(), world.subscribe()
    for subscriber in (first, second):
        headers = {"set-cookie": "canary=1; Path=/; Secure; Domain=127.0.0.1"}
        world.recorder.script(subscriber.path, lambda _body, headers=headers: web.Response(headers=headers))
    for _ in range(3):
        for subscriber in (first, second):
            world.ended(world.post(subscriber))
    assert len(world.recorder.events(first.path)) == len(world.recorder.events(second.path)) == 3
    assert all(name != "cookie" for one in world.recorder.receiver.arrived for name, _ in one.headers)


@pytest.mark.hostile("Receivers, through the whole system")
def test_receiver_that_was_down_gets_everything_when_it_is_back(world: World) -> None:
    subscriber = world.subscribe(max_retry_limit=50, base_delay_seconds=0.2)
    world.recorder.stop()
    try:
        events = [world.post(subscriber, b"%d" % n) for n in range(10)]
        for event_id in events:
            waiting = world.saga_in(event_id, "PendingRetry")
            assert waiting["final_error_code"] == "connection_refused"
    finally:
        world.recorder.start()
    world.make_due(subscriber)
    assert {world.ended(event_id)["status"] for event_id in events} == {"Completed"}
    arrived = {one.header("webhook-id"): one.body for one in world.recorder.events(subscriber.path)}
    assert arrived == {event_id: b"%d" % n for n, event_id in enumerate(events)}


@pytest.mark.hostile("Receivers, through the whole system")
def test_receiver_that_vanishes_in_the_middle_gets_it_again(world: World) -> None:
    subscriber = world.subscribe("hang", max_retry_limit=50, timeout_seconds=30)
    event_id = world.post(subscriber, b'"once more"')
    world.recorder.wait_for(subscriber.path, 1)
    world.recorder.stop()
    world.recorder.script(subscriber.path, 200)
    world.recorder.start()
    saga = world.ended(event_id)
    assert saga["status"] == "Completed"
    codes = ("connection_reset", "connection_refused")
    assert saga["attempts"][0]["reconnected"] or saga["final_error_code"] in codes
    arrived = world.recorder.events(subscriber.path)
    assert len(arrived) >= 2
    assert {(one.body, one.header("webhook-id")) for one in arrived} == {(b'"once more"', event_id)}


@pytest.mark.hostile("Receivers, through the whole system")
def test_large_and_endless_answers_cost_nothing(world: World) -> None:
    huge, drip = (
        world.subscribe("huge/5000000", max_retry_limit=1),
        world.subscribe("drip", max_retry_limit=1),
    )
    events = [world.post(huge), world.post(drip)]
    for event_id in events:
        saga = world.ended(event_id)
        assert saga["status"] == "Completed"  # the status had come; it decides
        assert saga["attempts"][0]["response_truncated"] is True
        assert len(saga["attempts"][0]["response_body"]) <= 16384


@pytest.mark.hostile("Receivers, through the whole system")
def test_hostile_text_in_an_answer_is_only_data(world: World) -> None:
    subscriber = world.subscribe(max_retry_limit=1)
    text = b"\x00<script>alert(1)</script>\xff\r\n\x1b[31m\xe2\x80\xae"
    world.recorder.script(subscriber.path, lambda _: web.Response(body=text, status=500, reason="no good"))
    event_id = world.post(subscriber)
    assert world.ended(event_id)["final_error_code"] == "http_500"
    answer = world.api.get(f"/v1/events/{event_id}")
    assert answer.headers["content-type"] == "application/json"
    body = json.loads(answer.body)["sagas"][0]["attempts"][0]["response_body"]
    assert "\x00" not in body
    assert "<script>" in body


def test_retry_after_only_lengthens_the_wait(world: World) -> None:
    later, sooner = (world.subscribe(base_delay_seconds=delay, max_retry_limit=2) for delay in (0.2, 300))
    for subscriber, seconds in ((later, "600"), (sooner, "0")):
        world.recorder.script(
            subscriber.path,
            lambda _body, seconds=seconds: web.Response(status=503, headers={"retry-after": seconds}),
        )
    for subscriber, least, most in ((later, 590, 610), (sooner, 290, 310)):
        event_id = world.post(subscriber)
        world.saga_in(event_id, "PendingRetry")
        wait = world.running.rows(
            "SELECT extract(epoch FROM next_attempt_at - now())::float8 AS seconds FROM webhook_delivery_sagas "
            "WHERE subscription_id = %s",
            subscriber.id,
        )[0]["seconds"]
        assert least <= wait <= most


@pytest.mark.hostile("Receivers, through the whole system")
def test_address_that_is_no_longer_permitted_is_not_called(world: World) -> None:
    """A row edited under a live subscription: the guard at the moment of the call decides."""
    subscriber = world.subscribe(max_retry_limit=1)
    moved = "UPDATE subscriptions SET verified = false, callback_url = 'https://10.0.0.1/' WHERE id = %s"
    world.running.run(moved, subscriber.id)
    world.running.verify_by_hand(subscriber.id)
    saga = world.ended(world.post(subscriber))
    assert saga["final_error_code"] == "address_blocked"
    assert saga["attempts"][0]["response_body"] is None
