"""A rotated secret: receivers with the old one and with the new one can both verify until the old one ends."""

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from hooksaga.operations.subscriptions import MAX_SECRETS
from tests.api.http_client import assert_problem
from tests.e2e.world import World, assert_signed


def test_both_secrets_verify_while_they_overlap(world: World) -> None:
    subscriber = world.subscribe()
    rotated = world.api.good("POST", f"{subscriber.target}/rotate-secret", {"overlap_seconds": 600})
    world.ended(world.post(subscriber))
    (arrived,) = world.recorder.events(subscriber.path)
    assert rotated["secret"] != subscriber.secret
    assert_signed(arrived, subscriber.secret)
    assert_signed(arrived, rotated["secret"])


def test_without_overlap_the_old_secret_ends_at_once_and_is_deleted(world: World) -> None:
    subscriber = world.subscribe()
    rotated = world.api.good("POST", f"{subscriber.target}/rotate-secret", {"overlap_seconds": 0})
    world.ended(world.post(subscriber))
    (arrived,) = world.recorder.events(subscriber.path)
    assert_signed(arrived, rotated["secret"])
    with pytest.raises(WebhookVerificationError):
        arrived.verify(subscriber.secret)
    query = "SELECT count(*) AS kept FROM subscription_secrets WHERE subscription_id = %s"
    assert world.running.rows(query, subscriber.id) == [{"kept": 1}]


@pytest.mark.parametrize("overlap", [-1, 604_801, "1", None])
def test_an_overlap_out_of_bounds_changes_nothing(world: World, overlap: object) -> None:
    subscriber = world.subscribe()
    answer = world.api.post(f"{subscriber.target}/rotate-secret", {"overlap_seconds": overlap})
    assert_problem(answer, 422, "invalid_field", "overlap_seconds")
    world.ended(world.post(subscriber))
    (arrived,) = world.recorder.events(subscriber.path)
    assert_signed(arrived, subscriber.secret)


def test_no_more_secrets_sign_than_a_receiver_takes_and_all_can_be_ended(world: World) -> None:
    """Each makes the header of the signatures longer; a caller that repeats its call may make many."""
    subscriber = world.subscribe()
    target = f"{subscriber.target}/rotate-secret"
    made = [world.api.good("POST", target)["secret"] for _ in range(MAX_SECRETS - 1)]
    assert_problem(world.api.post(target), 409, "too_many_secrets")
    world.ended(world.post(subscriber))
    (arrived,) = world.recorder.events(subscriber.path)
    for secret in (subscriber.secret, *made):
        assert_signed(arrived, secret)
    last = world.api.good("POST", target, {"overlap_seconds": 0})["secret"]
    world.ended(world.post(subscriber))
    arrived = world.recorder.events(subscriber.path)[-1]
    assert_signed(arrived, last)
    for secret in (subscriber.secret, *made):
        with pytest.raises(WebhookVerificationError):
            arrived.verify(secret)
