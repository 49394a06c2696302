"""The state machine: every state with every trigger, and nothing that is not in the table."""

import re
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.outcomes import ErrorCode
from hooksaga.core.saga import (
    JOB_MOVES,
    SAGA_MOVES,
    Due,
    End,
    IllegalMove,
    JobFailed,
    JobStatus,
    JobSucceeded,
    RetryPolicy,
    Saga,
    SagaStatus,
    Trigger,
    decide,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy(jitter=0)

PENDING, IN_PROGRESS = SagaStatus.PENDING, SagaStatus.IN_PROGRESS
PENDING_RETRY, COMPLETED, DEAD = SagaStatus.PENDING_RETRY, SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED

DELIVERABLE, UNDELIVERABLE = Due(deliverable=True), Due(deliverable=False)
FAILED, SUCCEEDED, CANCEL = JobFailed("http_503"), JobSucceeded(), End()
PROBE_FAILED, DISCARD, EXPIRE = (
    JobFailed("http_503", is_probe=True),
    End(ErrorCode.DISCARDED),
    End(ErrorCode.EXPIRED),
)
ERASE, FAILED_ERASED = End(ErrorCode.ERASED), JobFailed(ErrorCode.ERASED)
TRIGGERS: list[Trigger] = [
    DELIVERABLE,
    UNDELIVERABLE,
    FAILED,
    PROBE_FAILED,
    SUCCEEDED,
    CANCEL,
    DISCARD,
    EXPIRE,
    ERASE,
    FAILED_ERASED,
]

# What is not in here is illegal.
OUTCOMES: dict[tuple[SagaStatus, Trigger], SagaStatus] = {
    (PENDING, DELIVERABLE): IN_PROGRESS,
    (PENDING, UNDELIVERABLE): DEAD,
    **{(PENDING, end): DEAD for end in (CANCEL, DISCARD, EXPIRE, ERASE)},
    (IN_PROGRESS, SUCCEEDED): COMPLETED,
    (IN_PROGRESS, FAILED): PENDING_RETRY,
    (IN_PROGRESS, FAILED_ERASED): DEAD,
    (IN_PROGRESS, PROBE_FAILED): PENDING_RETRY,
    (PENDING_RETRY, DELIVERABLE): IN_PROGRESS,
    (PENDING_RETRY, UNDELIVERABLE): DEAD,
    **{(PENDING_RETRY, end): DEAD for end in (CANCEL, DISCARD, EXPIRE, ERASE)},
}


# What the trigger makes of a saga with no attempt left, where that is another end.
WITHOUT_ATTEMPTS_LEFT: dict[tuple[SagaStatus, Trigger], SagaStatus] = {
    (PENDING, DELIVERABLE): DEAD,
    (PENDING_RETRY, DELIVERABLE): DEAD,
    (IN_PROGRESS, FAILED): DEAD,
}
BEYOND_THE_LIMIT: dict[tuple[SagaStatus, Trigger], SagaStatus] = {(IN_PROGRESS, PROBE_FAILED): DEAD}
"""A probe keeps the last attempt, but not one that a lowered limit has taken meanwhile."""


def saga(
    status: SagaStatus, attempts: int = 1, *, due: datetime = NOW, error: str | None = "http_500"
) -> Saga:
    return Saga(7, status, attempts, due, error)


@pytest.mark.parametrize(("status", "trigger"), list(product(SagaStatus, TRIGGERS)), ids=str)
def test_every_state_with_every_trigger(status: SagaStatus, trigger: Trigger) -> None:
    expected = OUTCOMES.get((status, trigger))
    if expected is None:
        with pytest.raises(IllegalMove):
            decide(saga(status), trigger, POLICY, NOW)
    else:
        assert decide(saga(status), trigger, POLICY, NOW).status is expected


@pytest.mark.parametrize(("status", "trigger"), list(product(SagaStatus, TRIGGERS)), ids=str)
@pytest.mark.parametrize("is_due", [True, False])
@pytest.mark.parametrize("attempts", [3, 4, 5])
def test_every_state_with_every_trigger_with_and_without_attempts_left_and_time(
    status: SagaStatus, trigger: Trigger, attempts: int, is_due: bool
) -> None:
    """The last failure is the one that makes five; a saga that waits has used all when it has five."""
    used_up = attempts >= (4 if status is IN_PROGRESS else 5)
    expected = OUTCOMES.get((status, trigger))
    if expected is not None and used_up:
        expected = WITHOUT_ATTEMPTS_LEFT.get((status, trigger), expected)
    if expected is not None and attempts >= 5:
        expected = BEYOND_THE_LIMIT.get((status, trigger), expected)
    if isinstance(trigger, Due) and not is_due:
        expected = None
    before = saga(status, attempts, due=NOW if is_due else NOW + timedelta(seconds=1))
    if expected is None:
        with pytest.raises(IllegalMove, match=r"^saga 7 "):
            decide(before, trigger, POLICY, NOW)
    else:
        assert decide(before, trigger, POLICY, NOW).status is expected


@pytest.mark.parametrize(("status", "trigger"), OUTCOMES, ids=str)
@pytest.mark.parametrize("attempts", [0, 4, 5, 50])
def test_no_decision_leaves_the_table_of_moves(status: SagaStatus, trigger: Trigger, attempts: int) -> None:
    assert decide(saga(status, attempts), trigger, POLICY, NOW).status in SAGA_MOVES[status]


@pytest.mark.parametrize(("status", "trigger"), OUTCOMES, ids=str)
def test_only_a_result_counts_an_attempt_and_it_counts_one(status: SagaStatus, trigger: Trigger) -> None:
    counted = decide(saga(status, 1), trigger, POLICY, NOW).attempt_count - 1
    assert counted == (1 if isinstance(trigger, JobFailed | JobSucceeded) else 0)


def test_terminal_states_lead_nowhere_and_all_others_somewhere() -> None:
    assert [status for status, moves in SAGA_MOVES.items() if not moves] == [COMPLETED, DEAD]
    assert [status for status, moves in JOB_MOVES.items() if not moves] == [
        JobStatus.COMPLETED,
        JobStatus.FAILED,
    ]
    assert set(SAGA_MOVES) == set(SagaStatus)
    assert set(JOB_MOVES) == set(JobStatus)


@pytest.mark.parametrize("status", [PENDING, PENDING_RETRY])
@pytest.mark.parametrize("trigger", [DELIVERABLE, UNDELIVERABLE])
def test_nothing_is_started_before_its_time(status: SagaStatus, trigger: Trigger) -> None:
    waiting = saga(status, due=NOW + timedelta(microseconds=1))
    with pytest.raises(IllegalMove):
        decide(waiting, trigger, POLICY, NOW)


@pytest.mark.parametrize("end", [CANCEL, DISCARD, EXPIRE])
def test_a_saga_can_be_ended_before_its_time(end: End) -> None:
    waiting = saga(PENDING_RETRY, due=NOW + timedelta(hours=1))
    assert decide(waiting, end, POLICY, NOW).final_error_code == end.error_code


@pytest.mark.parametrize(("limit", "attempts"), [(1, 0), (5, 3), (5, 4)])
def test_a_failed_probe_never_uses_up_the_last_attempt(limit: int, attempts: int) -> None:
    before = saga(IN_PROGRESS, attempts)
    after = decide(before, PROBE_FAILED, RetryPolicy(max_retry_limit=limit, jitter=0), NOW)
    counts = attempts + 1 < limit
    assert (after.status, after.attempt_count) == (PENDING_RETRY, attempts + counts)
    assert after.final_error_code == "http_503"
    assert after.next_attempt_at > NOW


@pytest.mark.parametrize("attempts", [5, 9])
def test_a_probe_whose_limit_was_lowered_meanwhile_ends_as_any_other(attempts: int) -> None:
    """The database refuses a saga that ends without counting its attempt."""
    dead = decide(saga(IN_PROGRESS, attempts), PROBE_FAILED, POLICY, NOW)
    assert (dead.status, dead.attempt_count) == (DEAD, attempts + 1)


def test_a_probe_of_an_inactive_subscription_ends_its_saga_as_any_other() -> None:
    unsent = JobFailed(ErrorCode.SUBSCRIPTION_INACTIVE, is_probe=True)
    assert decide(saga(IN_PROGRESS, 4), unsent, POLICY, NOW).status is DEAD


@pytest.mark.parametrize(("limit", "attempts"), [(1, 0), (5, 4), (5, 5), (3, 9)])
def test_the_last_failure_ends_the_saga_in_one_step(limit: int, attempts: int) -> None:
    dead = decide(saga(IN_PROGRESS, attempts), FAILED, RetryPolicy(max_retry_limit=limit), NOW)
    assert (dead.status, dead.attempt_count, dead.final_error_code) == (DEAD, attempts + 1, "http_503")
    assert dead.next_attempt_at == NOW


@pytest.mark.parametrize("attempts", range(4))
def test_a_failure_with_attempts_left_waits(attempts: int) -> None:
    waiting = decide(saga(IN_PROGRESS, attempts), FAILED, POLICY, NOW)
    assert (waiting.status, waiting.attempt_count) == (PENDING_RETRY, attempts + 1)
    assert waiting.next_attempt_at == NOW + timedelta(seconds=30 * 2**attempts)


def test_a_saga_that_waits_says_what_went_wrong() -> None:
    assert decide(saga(IN_PROGRESS, 1), FAILED, POLICY, NOW).final_error_code == "http_503"
    assert decide(saga(IN_PROGRESS, 0, error=None), FAILED, POLICY, NOW).final_error_code == "http_503"


def test_sagas_that_failed_together_wait_unequally_long() -> None:
    """The jitter is the saga's own, so that they do not all come back at once."""
    failed = (Saga(saga_id, IN_PROGRESS, 0, NOW) for saga_id in range(20))
    assert len({decide(one, FAILED, RetryPolicy(), NOW).next_attempt_at for one in failed}) == 20


@pytest.mark.parametrize(
    ("status", "trigger", "due", "said"),
    [
        (PENDING, DELIVERABLE, NOW + timedelta(hours=1), "is not due before 2026-01-01T01:00:00+00:00"),
        (IN_PROGRESS, CANCEL, NOW, "is in progress: only its job's result can end it"),
        (COMPLETED, FAILED, NOW, "is Completed: no job of it can have failed now"),
        (PENDING, SUCCEEDED, NOW, "cannot go from Pending to Completed"),
    ],
)
def test_an_illegal_move_is_told_with_its_saga(
    status: SagaStatus, trigger: Trigger, due: datetime, said: str
) -> None:
    with pytest.raises(IllegalMove, match=f"^saga 7 {re.escape(said)}$"):
        decide(saga(status, due=due), trigger, POLICY, NOW)


def test_the_wait_counts_from_the_failure_not_from_the_attempt() -> None:
    old = saga(IN_PROGRESS, 0, due=NOW - timedelta(days=1))
    assert decide(old, FAILED, POLICY, NOW).next_attempt_at == NOW + timedelta(seconds=30)


def test_what_the_receiver_asked_for_is_passed_on() -> None:
    waiting = decide(saga(IN_PROGRESS, 0), JobFailed("http_429", 120), POLICY, NOW)
    assert waiting.next_attempt_at == NOW + timedelta(seconds=120)


@pytest.mark.parametrize("status", [PENDING, PENDING_RETRY])
def test_a_limit_lowered_below_what_was_used_ends_a_waiting_saga(status: SagaStatus) -> None:
    dead = decide(saga(status, 3), DELIVERABLE, RetryPolicy(max_retry_limit=3), NOW)
    assert (dead.status, dead.attempt_count, dead.final_error_code) == (DEAD, 3, "http_500")


def test_an_inactive_subscription_keeps_what_the_last_attempt_said() -> None:
    dead = decide(saga(PENDING_RETRY, 3), UNDELIVERABLE, POLICY, NOW)
    assert (dead.status, dead.final_error_code) == (DEAD, "http_500")
    dead = decide(saga(PENDING, 0, error=None), UNDELIVERABLE, POLICY, NOW)
    assert (dead.status, dead.final_error_code) == (DEAD, ErrorCode.SUBSCRIPTION_INACTIVE)


def test_a_job_that_was_not_sent_keeps_what_the_last_attempt_said() -> None:
    unsent = JobFailed(ErrorCode.SUBSCRIPTION_INACTIVE)
    assert decide(saga(IN_PROGRESS), unsent, POLICY, NOW).final_error_code == "http_500"
    first = decide(saga(IN_PROGRESS, 0, error=None), unsent, POLICY, NOW)
    assert first.final_error_code == ErrorCode.SUBSCRIPTION_INACTIVE


def test_a_success_keeps_what_went_wrong_before() -> None:
    assert decide(saga(IN_PROGRESS), SUCCEEDED, POLICY, NOW).final_error_code == "http_500"
    assert decide(saga(IN_PROGRESS, 0, error=None), SUCCEEDED, POLICY, NOW).final_error_code is None


def test_a_decision_changes_nothing_that_it_was_given() -> None:
    given_saga = saga(IN_PROGRESS)
    decide(given_saga, FAILED, POLICY, NOW)
    assert given_saga == saga(IN_PROGRESS)


@given(
    failures=st.lists(st.booleans(), max_size=60),
    limit=st.integers(1, 50),
    base=st.floats(0.001, 3600),
    retry_after=st.none() | st.integers(0, 10**9),
)
def test_every_life_ends_within_its_limit(
    failures: list[bool], limit: int, base: float, retry_after: int | None
) -> None:
    policy = RetryPolicy(max_retry_limit=limit, base_delay_seconds=base)
    living, now, posts = Saga(1, PENDING, 0, NOW), NOW, 0
    for fails in [*failures, *[True] * 50]:
        living = decide(living, DELIVERABLE, policy, now)
        posts += 1
        result = JobFailed("http_503", retry_after) if fails else JobSucceeded()
        living = decide(living, result, policy, now)
        if not SAGA_MOVES[living.status]:
            break
        assert now < living.next_attempt_at <= now + timedelta(seconds=3600 * 1.1 + 1)
        now = living.next_attempt_at
    assert living.status in (COMPLETED, DEAD)
    assert posts == living.attempt_count <= limit
