"""A receiver can tell a test event from others."""

from tests.e2e.world import World, assert_signed


def test_a_test_event_is_signed_and_marked_and_others_are_not(world: World) -> None:
    subscriber = world.subscribe()
    beside = world.subscribe(event_type=subscriber.event_type)
    accepted = world.api.good("POST", f"{subscriber.target}/test", {"payload": {"test": 1}})
    (test,) = world.recorder.wait_for(subscriber.path, 1)
    assert_signed(test, subscriber.secret)
    assert (test.header("webhook-id"), test.header("hooksaga-test")) == (accepted["id"], "true")
    assert test.header("hooksaga-event-type") == subscriber.event_type
    world.ended(world.post(subscriber, b'{"test":2}'))
    usual = world.recorder.wait_for(subscriber.path, 2)[1]
    assert "hooksaga-test" not in {name.lower() for name, _ in usual.headers}
    assert len(world.recorder.wait_for(beside.path, 1)) == 1
    world.assert_audit_finds_nothing()
