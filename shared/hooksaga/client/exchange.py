"""The steps of one call, from events to results, as a generator that both clients execute.

A step is one attempt; its outcome is sent back into the generator.
"""

import random
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import TypeAlias, TypeVar

from hooksaga.client.answers import Answer, NoAnswer, Outcome, read_batch, read_event
from hooksaga.client.errors import EventRefused, HooksagaClientError, Unavailable
from hooksaga.client.events import Event, SentEvent
from hooksaga.client.requests import (
    Item,
    Request,
    batch_item,
    batch_request,
    event_request,
    groups_of,
    with_key,
)
from hooksaga.client.retries import RetryPolicy, is_retried, retry_after_seconds

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """Wait, then post the request. timeout_seconds applies to connecting, sending and receiving each."""

    request: Request
    pause_seconds: float
    timeout_seconds: float


Steps: TypeAlias = Generator[Attempt, Outcome, T]


@dataclass(frozen=True, slots=True)
class BatchResult:
    items: tuple[SentEvent | EventRefused, ...]

    @property
    def refused(self) -> list[tuple[int, EventRefused]]:
        """Return the rejected events with their positions in the batch, from 0."""
        return [(place, item) for place, item in enumerate(self.items) if isinstance(item, EventRefused)]


@dataclass(frozen=True, slots=True)
class Chances:
    """Sources of times, keys and randomness of a call."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dice: Callable[[], float] = random.random
    new_key: Callable[[], str] = lambda: str(uuid.uuid4())


CHANCES = Chances()


def send_steps(
    event: Event, policy: RetryPolicy, *, traceparent: str | None = None, chances: Chances = CHANCES
) -> Steps[SentEvent]:
    """Send one event. Raises HooksagaClientError."""
    keyed = with_key(event, chances.new_key)
    try:
        request = event_request(keyed, traceparent)
        answer = yield from _answered(request, policy, chances)
        return read_event(answer, keyed.idempotency_key or "")
    except HooksagaClientError as error:
        error.remaining = (keyed,)
        raise


def batch_steps(
    events: Iterable[Event],
    policy: RetryPolicy,
    *,
    traceparent: str | None = None,
    chances: Chances = CHANCES,
) -> Steps[BatchResult]:
    """Send events in as few requests as possible, one after the other. Each request has the policy's whole time.

    Raises HooksagaClientError with `results` and `remaining` if a request does not succeed as a whole.
    """
    items = [batch_item(with_key(event, chances.new_key)) for event in events]
    results: list[SentEvent | EventRefused] = []
    for group in groups_of(items):
        try:
            results += yield from _group_steps(group, policy, traceparent, chances)
        except HooksagaClientError as error:
            error.results = tuple(results)
            error.remaining = tuple(item.event for item in items[len(results) :])
            raise
    return BatchResult(tuple(results))


def _group_steps(
    group: Sequence[Item], policy: RetryPolicy, traceparent: str | None, chances: Chances
) -> Steps[list[SentEvent | EventRefused]]:
    sent = [item for item in group if item.refusal is None]
    answers: list[SentEvent | EventRefused] = []
    if sent:
        answer = yield from _answered(batch_request(sent, traceparent), policy, chances)
        answers = read_batch(answer, [item.key for item in sent])
    in_order = iter(answers)
    return [item.refusal or next(in_order) for item in group]


def _answered(request: Request, policy: RetryPolicy, chances: Chances) -> Steps[Answer]:
    """Return the first response that is not retried. Raises Unavailable."""
    started = chances.clock()
    pause = 0.0
    for number in count(1):
        begins = chances.clock() - started + pause
        outcome = yield Attempt(request, pause, policy.timeout_seconds(begins))
        if isinstance(outcome, Answer) and not is_retried(outcome):
            return outcome
        asked = retry_after_seconds(outcome, chances.now())
        elapsed = chances.clock() - started
        wait = policy.wait_seconds(number, elapsed=elapsed, retry_after=asked, dice=chances.dice())
        if wait is None:
            raise Unavailable(request.idempotency_key, number, _reason(outcome), asked)
        pause = wait
    raise AssertionError("unreachable: the loop returns or raises")


def _reason(outcome: Outcome) -> str:
    return outcome.reason if isinstance(outcome, NoAnswer) else f"the API answered {outcome.status}"
