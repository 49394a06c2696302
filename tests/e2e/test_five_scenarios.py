"""The promises of delivery, each against the fault that would break it. The worker's crash has a file of its own."""

from datetime import datetime

from tests.e2e.world import World, assert_signed


def test_duplicate_event_is_delivered_once(world: World) -> None:
    subscriber = world.subscribe()
    key = ("idempotency-key", subscriber.event_type)
    event_id = world.post(subscriber, b'{"n": 1}', key)
    for _ in range(5):
        again = world.api.post_event(
            b'{"event_type":"%s","payload":{"n": 1}}' % subscriber.event_type.encode(), key
        )
        assert (again.status, again.json()["id"]) == (200, event_id)
    assert world.ended(event_id)["status"] == "Completed"
    world.pass_a_later_event()
    assert [one.header("webhook-id") for one in world.recorder.events(subscriber.path)] == [event_id]


def test_duplicate_routing_starts_no_second_saga(world: World) -> None:
    """As if the router's message arrived twice, or the outbox row was inserted twice."""
    subscriber = world.subscribe()
    other = world.subscribe(event_type=subscriber.event_type)
    event_id = world.post(subscriber)
    world.recorder.wait_for(other.path, 1)
    assert world.ended(event_id)["status"] == "Completed"
    for _ in range(3):
        world.running.run(
            "INSERT INTO routing_outbox (event_id, created_at) "
            "SELECT id, created_at FROM events WHERE event_type = %s ON CONFLICT DO NOTHING",
            subscriber.event_type,
        )
        world.pass_a_later_event()
    assert world.running.rows("SELECT FROM routing_outbox") == []
    assert len(world.sagas(event_id)) == 2
    assert len(world.recorder.events(subscriber.path)) == 1
    assert len(world.recorder.events(other.path)) == 1


def test_failing_delivery_is_retried_with_backoff_until_it_is_a_dead_letter(world: World) -> None:
    subscriber = world.subscribe("status/500")
    event_id = world.post(subscriber, b'{"a": 1.10}')
    saga = world.ended(event_id)
    assert (saga["status"], saga["attempt_count"], saga["final_error_code"]) == (
        "DeadLettered",
        3,
        "http_500",
    )
    attempts = saga["attempts"]
    assert [attempt["attempt_number"] for attempt in attempts] == [1, 2, 3]
    assert {(attempt["status"], attempt["response_status"]) for attempt in attempts} == {("Failed", 500)}
    for before, after, wait in zip(attempts, attempts[1:], (0.2, 0.4), strict=False):
        gap = moment(after["attempt_at"]) - moment(before["finished_at"])
        assert wait <= gap < wait + 5
        assert moment(after["leased_at"]) >= moment(after["attempt_at"])
    arrived = world.recorder.events(subscriber.path)
    assert [one.header("hooksaga-attempt") for one in arrived] == ["1", "2", "3"]
    letter = world.dead_letter(event_id)
    shown = world.api.get(f"/v1/dead-letters/{letter['id']}")
    assert shown.body.endswith(b'"payload_snapshot":{"a": 1.10}}')
    world.pass_a_later_event()
    assert len(world.recorder.events(subscriber.path)) == 3


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_own_limit_of_a_subscription_counts_all_attempts(world: World) -> None:
    once = world.subscribe("status/404", max_retry_limit=1)
    saga = world.ended(world.post(once))
    assert (saga["status"], saga["attempt_count"]) == ("DeadLettered", 1)
    assert len(world.recorder.events(once.path)) == 1


def test_limit_lowered_while_waiting_ends_the_wait(world: World) -> None:
    subscriber = world.subscribe("status/503", max_retry_limit=50, base_delay_seconds=3600)
    event_id = world.post(subscriber)
    world.saga_in(event_id, "PendingRetry")
    world.api.good("PATCH", subscriber.target, {"max_retry_limit": 1})
    world.make_due(subscriber)
    saga = world.ended(event_id)
    assert (saga["status"], saga["attempt_count"], saga["final_error_code"]) == (
        "DeadLettered",
        1,
        "http_503",
    )
    assert len(world.recorder.events(subscriber.path)) == 1


def test_requeue_is_a_new_saga_and_the_old_one_stays_as_it_was(world: World) -> None:
    subscriber = world.subscribe("down")
    world.recorder.receiver.add_secret(subscriber.path, subscriber.secret)
    event_id = world.post(subscriber, b'"again"')
    letter = world.dead_letter(event_id)
    tables = "SELECT s, j FROM webhook_delivery_sagas s JOIN webhook_delivery_jobs j ON j.saga_id = s.id "
    old = world.running.rows(tables + "WHERE s.id = %s ORDER BY j.id", letter["saga_id"])
    world.recorder.receiver.fix(subscriber.path)
    new_id = world.requeue(event_id)
    saga = world.ended(event_id)
    assert (saga["id"], saga["status"], saga["attempt_count"]) == (new_id, "Completed", 1)
    assert saga["requeued_from"] == letter["id"]
    assert world.running.rows(tables + "WHERE s.id = %s ORDER BY j.id", letter["saga_id"]) == old
    arrived = world.recorder.events(subscriber.path)
    assert [one.header("hooksaga-attempt") for one in arrived] == ["1", "2", "3", "1"]
    assert [dict(one.headers).get("hooksaga-started-by") for one in arrived] == [None, None, None, "requeue"]
    assert {one.header("webhook-id") for one in arrived} == {event_id}
    for one in arrived:
        assert_signed(one, subscriber.secret)
    assert world.api.post(f"/v1/dead-letters/{letter['id']}/requeue").status == 200
    world.pass_a_later_event()
    assert len(world.recorder.events(subscriber.path)) == 4


def test_success_after_failures_keeps_the_last_failures_word(world: World) -> None:
    subscriber = world.subscribe("flaky/2")
    saga = world.ended(world.post(subscriber))
    assert (saga["status"], saga["attempt_count"], saga["final_error_code"]) == ("Completed", 3, "http_503")
    assert [attempt["error_code"] for attempt in saga["attempts"]] == ["http_503", "http_503", None]
