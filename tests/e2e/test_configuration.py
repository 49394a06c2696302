"""Configuration is read when a job is claimed: changes apply to the next attempt, and to nothing before."""

from typing import Any

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from hooksaga.core.signing import encode_secret
from tests.api.http_client import assert_problem
from tests.api.running_system import wait_until
from tests.e2e.world import Subscriber, World


def failing(world: World, **more: Any) -> tuple[Subscriber, str]:
    """A subscriber whose one event waits for a retry that comes only when a test makes it due."""
    wanted = {"max_retry_limit": 50, "base_delay_seconds": 3600, **more}
    subscriber = world.subscribe("down", **wanted)
    event_id = world.post(subscriber)
    world.saga_in(event_id, "PendingRetry")
    return subscriber, event_id


def attempts(world: World, event_id: str) -> int:
    return world.sagas(event_id)[-1]["attempt_count"]


def retry(world: World, subscriber: Subscriber, event_id: str) -> None:
    """One more attempt, to its end."""
    before = attempts(world, event_id)
    world.make_due(subscriber)
    wait_until(lambda: attempts(world, event_id) > before, "one more attempt")


def test_new_address_gets_nothing_before_it_is_verified_and_then_everything(world: World) -> None:
    subscriber, event_id = failing(world)
    new_path = world.new_path("ok")
    changed = world.api.good("PATCH", subscriber.target, {"callback_url": world.recorder.url + new_path})
    assert changed["verified"] is True
    assert changed["pending_callback_url"] == world.recorder.url + new_path
    retry(world, subscriber, event_id)
    assert len(world.recorder.events(subscriber.path)) == 2
    assert world.recorder.events(new_path) == []
    verified = world.api.good("POST", f"{subscriber.target}/verify")
    assert (verified["callback_url"], verified["pending_callback_url"]) == (
        world.recorder.url + new_path,
        None,
    )
    assert len(world.recorder.challenges(new_path)) == 1
    world.make_due(subscriber)
    assert world.ended(event_id)["status"] == "Completed"
    assert [one.header("webhook-id") for one in world.recorder.events(new_path)] == [event_id]
    assert len(world.recorder.events(subscriber.path)) == 2


def test_new_address_that_fails_its_handshake_changes_nothing(world: World) -> None:
    subscriber, event_id = failing(world)
    new_path = world.new_path("ok")
    world.recorder.script(new_path, 200)  # a 2xx that does not repeat the challenge
    world.api.good("PATCH", subscriber.target, {"callback_url": world.recorder.url + new_path})
    answer = world.api.post(f"{subscriber.target}/verify")
    assert_problem(answer, 422, "verification_failed", "callback_url")
    retry(world, subscriber, event_id)
    assert world.recorder.events(new_path) == []
    assert len(world.recorder.events(subscriber.path)) == 2


def test_even_another_path_or_port_of_the_same_host_is_a_new_address(world: World) -> None:
    subscriber = world.subscribe()
    shown = world.api.good("GET", subscriber.target)
    for other in (shown["callback_url"] + "/x", shown["callback_url"] + "?x", "https://127.0.0.1:8443/"):
        changed = world.api.good("PATCH", subscriber.target, {"callback_url": other})
        assert (changed["callback_url"], changed["pending_callback_url"]) == (shown["callback_url"], other)


def test_headers_apply_to_the_next_attempt(world: World) -> None:
    subscriber, event_id = failing(world, headers={"x-version": "1"})
    world.api.good("PATCH", subscriber.target, {"headers": {"x-version": "2", "x-new": "yes"}})
    retry(world, subscriber, event_id)
    first, second = world.recorder.events(subscriber.path)
    assert (first.header("x-version"), second.header("x-version")) == ("1", "2")
    assert second.header("x-new") == "yes"
    assert "x-new" not in dict(first.headers)


def test_timeout_applies_to_the_next_attempt(world: World) -> None:
    subscriber, event_id = failing(world, timeout_seconds=30)
    slow_path = world.new_path("slow/3000")
    url = world.recorder.url + slow_path
    world.api.good("PATCH", subscriber.target, {"callback_url": url})
    world.api.good("POST", f"{subscriber.target}/verify")
    world.api.good("PATCH", subscriber.target, {"timeout_seconds": 1})
    retry(world, subscriber, event_id)
    last = world.sagas(event_id)[-1]["attempts"][-1]
    assert last["error_code"] == "timeout_total"
    assert 900 <= last["duration_ms"] < 3000


def test_limits_apply_to_the_next_decision(world: World) -> None:
    subscriber, event_id = failing(world)
    world.api.good("PATCH", subscriber.target, {"max_retry_limit": 2})
    retry(world, subscriber, event_id)
    assert world.ended(event_id)["status"] == "DeadLettered"


def test_secrets_apply_to_the_next_attempt_and_old_ones_sign_beside_until_they_expire(world: World) -> None:
    subscriber, event_id = failing(world)
    new_secret = encode_secret(b"n" * 32)
    box = world.running.services.box
    assert box is not None
    world.running.run(
        "UPDATE subscription_secrets SET expires_at = now() + interval '1 hour' WHERE subscription_id = %s",
        subscriber.id,
    )
    world.running.run(
        "INSERT INTO subscription_secrets (subscription_id, secret) VALUES (%s, %s)",
        subscriber.id,
        box.seal(new_secret),
    )
    retry(world, subscriber, event_id)
    world.running.run(
        "UPDATE subscription_secrets SET expires_at = now() WHERE subscription_id = %s AND expires_at IS NOT NULL",
        subscriber.id,
    )
    retry(world, subscriber, event_id)
    before, both, after = world.recorder.events(subscriber.path)
    before.verify(subscriber.secret)
    both.verify(subscriber.secret)
    both.verify(new_secret)
    after.verify(new_secret)
    with pytest.raises(WebhookVerificationError):
        before.verify(new_secret)
    with pytest.raises(WebhookVerificationError):
        after.verify(subscriber.secret)


def test_secret_that_cannot_be_read_fails_alone(world: World) -> None:
    """One bad row must not stop its neighbours, and does not wait for ever."""
    broken, healthy = world.subscribe(max_retry_limit=1), world.subscribe()
    world.running.run(
        "UPDATE subscription_secrets SET secret = 'unreadable' WHERE subscription_id = %s", broken.id
    )
    events = [world.post(subscriber) for subscriber in (broken, healthy) for _ in range(3)]
    ended = [world.ended(event_id) for event_id in events]
    assert [saga["final_error_code"] for saga in ended] == ["internal_error"] * 3 + [None] * 3
    assert world.recorder.events(broken.path) == []
    assert len(world.recorder.events(healthy.path)) == 3


def test_deactivated_while_waiting_is_a_dead_letter_that_can_be_requeued_later(world: World) -> None:
    subscriber, event_id = failing(world)
    world.api.good("PATCH", subscriber.target, {"active": False})
    world.make_due(subscriber)
    saga = world.ended(event_id)
    assert (saga["status"], saga["final_error_code"], saga["attempt_count"]) == (
        "DeadLettered",
        "http_503",
        1,
    )
    letter = world.dead_letter(event_id)
    assert letter["reason"] == "no further attempt was made: the subscription was deactivated by an operator"
    assert_problem(world.api.post(f"/v1/dead-letters/{letter['id']}/requeue"), 409, "subscription_inactive")
    world.api.good("PATCH", subscriber.target, {"active": True})
    world.recorder.receiver.fix(subscriber.path)
    world.requeue(event_id)
    assert world.ended(event_id)["status"] == "Completed"
    assert len(world.recorder.events(subscriber.path)) == 2


def test_event_posted_while_inactive_is_not_delivered_later(world: World) -> None:
    subscriber = world.subscribe()
    world.api.good("PATCH", subscriber.target, {"active": False})
    missed = world.post(subscriber)
    world.pass_a_later_event()
    world.api.good("PATCH", subscriber.target, {"active": True})
    taken = world.post(subscriber)
    assert world.ended(taken)["status"] == "Completed"
    assert world.sagas(missed) == []
    assert [one.header("webhook-id") for one in world.recorder.events(subscriber.path)] == [taken]


def test_unverified_subscription_gets_no_event(world: World) -> None:
    subscriber = world.subscribe(verify=False)
    missed = world.post(subscriber)
    world.pass_a_later_event()
    assert world.sagas(missed) == []
    assert world.recorder.events(subscriber.path) == []


def test_new_subscription_never_gets_older_events(world: World) -> None:
    """Not by routing that comes late, not by the retries of an older event, not by its requeue."""
    old, event_id = failing(world, max_retry_limit=2)
    new = world.subscribe(event_type=old.event_type)
    world.running.run(
        "INSERT INTO routing_outbox (event_id, created_at) SELECT id, created_at FROM events WHERE event_type = %s",
        old.event_type,
    )
    retry(world, old, event_id)
    world.recorder.receiver.fix(old.path)
    world.requeue(event_id)
    world.ended(event_id)
    later = world.post(old)
    world.recorder.wait_for(new.path, 1)
    world.pass_a_later_event()
    assert [one.header("webhook-id") for one in world.recorder.events(new.path)] == [later]
    assert [one.header("webhook-id") for one in world.recorder.events(old.path)] == [event_id] * 3 + [later]


def test_subscriptions_match_by_whole_type_and_tenant(world: World) -> None:
    subscriber = world.subscribe()
    others = [
        world.subscribe(event_type=subscriber.event_type + ".x"),
        world.subscribe(event_type=subscriber.event_type.upper()),
        world.subscribe(event_type=subscriber.event_type, tenant_id="another"),
    ]
    world.ended(world.post(subscriber))
    world.pass_a_later_event()
    assert len(world.recorder.events(subscriber.path)) == 1
    assert [world.recorder.events(other.path) for other in others] == [[], [], []]


def test_no_request_starts_after_the_delete_has_returned(world: World) -> None:
    subscriber = world.subscribe("down", max_retry_limit=50, base_delay_seconds=3600, circuit_breaker=False)
    events = [world.post(subscriber) for _ in range(40)]
    for event_id in events:
        world.saga_in(event_id, "PendingRetry")
    assert world.api.call("DELETE", subscriber.target).status == 204
    before = len(world.recorder.events(subscriber.path))
    world.make_due(subscriber)
    ended = [world.ended(event_id) for event_id in events]
    assert {(saga["status"], saga["final_error_code"]) for saga in ended} == {("DeadLettered", "http_503")}
    reasons = {world.dead_letter(event_id)["reason"].partition(" at ")[0] for event_id in events}
    assert reasons == {"no further attempt was made: the subscription was deleted"}
    assert len(world.recorder.events(subscriber.path)) == before == 40
    assert_problem(
        world.api.post(f"/v1/dead-letters/{world.dead_letter(events[0])['id']}/requeue"),
        409,
        "subscription_inactive",
    )


def test_delete_while_a_request_is_under_way_lets_it_end_and_starts_no_other(world: World) -> None:
    subscriber = world.subscribe("slow/700", max_retry_limit=50)
    event_id = world.post(subscriber)
    world.recorder.wait_for(subscriber.path, 1)
    assert world.api.call("DELETE", subscriber.target).status == 204
    late = world.post(subscriber)
    assert world.ended(event_id)["status"] == "Completed"
    world.pass_a_later_event()
    assert world.sagas(late) == []
    assert len(world.recorder.events(subscriber.path)) == 1
