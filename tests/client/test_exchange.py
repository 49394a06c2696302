"""Retries and batches, step by step, without a network: both clients only carry out what is tried here."""

import pickle

import pytest

from hooksaga.client import BatchResult, Event, EventRefused, RetryPolicy, Unavailable, UnexpectedAnswer
from hooksaga.client.answers import Answer, NoAnswer, Outcome
from hooksaga.client.exchange import batch_steps, send_steps
from tests.client.scripted import Scripted, accepted, answer, problem

EVENT = Event("a", {"n": 1})
GOOD = answer(202, accepted())
CUT = NoAnswer("connection reset")
SMALL = RetryPolicy(attempts=3, first_wait_seconds=1)


def send(script: Scripted, policy: RetryPolicy = SMALL, event: Event = EVENT) -> object:
    return script.run(send_steps(event, policy, chances=script.chances()))


def batch(script: Scripted, *events: Event) -> BatchResult:
    return script.run(batch_steps(events, SMALL, chances=script.chances()))


@pytest.mark.parametrize(
    "failure", [CUT, *(answer(status) for status in (408, 429, 500, 502, 503, 504))], ids=str
)
def test_what_may_pass_is_tried_again_with_the_same_key_and_bytes(failure: Outcome) -> None:
    script = Scripted([failure, failure, GOOD])
    sent = send(script)
    assert sent == send(Scripted([GOOD]))
    first, *others = script.attempts
    assert first.request.headers["idempotency-key"] == "made-1"
    assert [attempt.request for attempt in others] == [first.request] * 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 431, 451])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    script = Scripted([answer(status, problem(status, "some_code", field="tenant_id"))])
    with pytest.raises(EventRefused) as refused:
        send(script)
    error = refused.value
    assert (error.status, error.code, error.field) == (status, "some_code", "tenant_id")
    assert error.detail == "why some_code"
    assert str(error) == f"some_code ({status}): tenant_id: why some_code"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert [event.idempotency_key for event in error.remaining] == ["made-1"]


@pytest.mark.parametrize(
    "wrong",
    [
        answer(200, {"hello": 1}),
        answer(202, [1]),
        Answer(200, b"<html>"),
        Answer(200, b"[" * 100_000),
        answer(301, accepted(), location="/x"),
        answer(501),
        answer(202, {**accepted(), "created_at": "yesterday"}),
    ],
    ids=str,
)
def test_what_is_no_answer_of_the_api_is_said(wrong: Answer) -> None:
    with pytest.raises(UnexpectedAnswer, match="base_url") as unexpected:
        send(Scripted([wrong]))
    assert str(pickle.loads(pickle.dumps(unexpected.value))) == str(unexpected.value)


def test_a_refusal_by_some_other_server_has_no_code() -> None:
    with pytest.raises(EventRefused, match="base_url") as refused:
        send(Scripted([Answer(404, b"<html>")]))
    assert (refused.value.status, refused.value.code) == (404, "")


def test_after_the_last_attempt_the_key_is_told() -> None:
    script = Scripted([CUT] * 3)
    with pytest.raises(
        Unavailable, match="3 attempts: connection reset; idempotency key order-1"
    ) as given_up:
        send(script, event=Event("a", 1, idempotency_key="order-1"))
    assert (given_up.value.idempotency_key, given_up.value.attempts) == ("order-1", 3)
    assert given_up.value.remaining == (Event("a", 1, idempotency_key="order-1"),)
    assert str(pickle.loads(pickle.dumps(given_up.value))) == str(given_up.value)


def test_waits_double_and_are_shortened_by_chance() -> None:
    policy = RetryPolicy(attempts=6, first_wait_seconds=1, longest_wait_seconds=5, total_seconds=100)
    longest, shortest = Scripted([CUT] * 5 + [GOOD]), Scripted([CUT] * 5 + [GOOD], dice=1)
    send(longest, policy)
    send(shortest, policy)
    assert longest.pauses == [0, 1, 2, 4, 5, 5]
    assert shortest.pauses == [0, 0.5, 1, 2, 2.5, 2.5]


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        ("7", 7),
        ("0", 1),
        ("Thu, 01 Jan 2026 00:00:09 GMT", 9),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 1),
        ("soon", 1),
        ("", 1),
        ("-5", 1),
        ("²", 1),
    ],
)
def test_retry_after_makes_the_wait_longer_and_never_shorter(asked: str, wait: float) -> None:
    script = Scripted([answer(503, retry_after=asked), GOOD])
    send(script)
    assert script.pauses == [0, wait]


def test_a_wait_beyond_the_total_time_is_not_begun() -> None:
    script = Scripted([answer(429, retry_after="31")])
    with pytest.raises(Unavailable) as given_up:
        send(script)
    assert (given_up.value.attempts, given_up.value.retry_after_seconds) == (1, 31)


def test_the_total_time_bounds_the_attempts_and_their_timeouts() -> None:
    policy = RetryPolicy(attempts=100, total_seconds=40, attempt_seconds=15, first_wait_seconds=1)
    script = Scripted([CUT] * 3, attempt_seconds=15)
    with pytest.raises(Unavailable):
        send(script, policy)
    assert [attempt.timeout_seconds for attempt in script.attempts] == [15, 15, 40 - 2 * 15 - 1 - 2]


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"total_seconds": 0}, {"attempt_seconds": -1}, {"first_wait_seconds": -1}]
)
def test_a_policy_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="retry policy"):
        RetryPolicy(**wrong)


def test_a_batch_is_answered_in_order_and_refusals_in_their_places() -> None:
    items = [accepted(1), {"error": problem(422, "invalid_event_type", field="event_type")}, accepted(2)]
    script = Scripted([answer(200, {"items": items})])
    result = batch(script, EVENT, Event("", 1), Event("a", "no json"), EVENT)
    first, second, third, fourth = result.items
    assert isinstance(first, object)
    assert [getattr(one, "id", None) for one in (first, fourth)] == [items[0]["id"], items[2]["id"]]
    assert [place for place, _ in result.refused] == [1, 2]
    assert [one.code for one in (second, third) if isinstance(one, EventRefused)] == [
        "invalid_event_type",
        "invalid_json",
    ]
    assert [getattr(one, "idempotency_key", None) for one in result.items] == ["made-1", None, None, "made-4"]


def test_a_batch_of_nothing_that_can_be_sent_asks_nobody() -> None:
    assert batch(Scripted([])) == BatchResult(())
    assert [place for place, _ in batch(Scripted([]), Event("a", "no json")).refused] == [0]


@pytest.mark.parametrize(
    ("last", "error"),
    [([CUT] * 3, Unavailable), ([answer(401, problem(401, "unauthorized"))], EventRefused)],
    ids=["unavailable", "refused"],
)
def test_a_batch_that_stops_half_way_tells_what_was_stored_and_what_remains(
    last: list[Outcome], error: type[Unavailable | EventRefused]
) -> None:
    first = answer(200, {"items": [accepted(number) for number in range(500)]})
    events = [Event("a", number) for number in range(1001)]
    with pytest.raises(error) as stopped:
        batch(Scripted([first, *last]), *events)
    assert len(stopped.value.results) == 500
    assert [event.payload for event in stopped.value.remaining] == list(range(500, 1001))
    assert [event.idempotency_key for event in stopped.value.remaining] == [
        f"made-{number}" for number in range(501, 1002)
    ]


@pytest.mark.parametrize("items", [None, [], [accepted(), accepted()], ["x"], [{}]], ids=str)
def test_an_answer_that_does_not_fit_the_batch_is_no_answer(items: object) -> None:
    with pytest.raises(UnexpectedAnswer):
        batch(Scripted([answer(200, {"items": items})]), EVENT)
