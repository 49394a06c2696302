"""Ages and pace of retention."""

from datetime import timedelta

import pytest

from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.retention import (
    BATCH_SECONDS,
    MAX_BATCH,
    MAX_REST,
    MIN_REST,
    SMALLEST_BATCH,
    Pace,
    RetentionKind,
    RetentionPolicy,
)
from hooksaga.operations.prune import Place, Pruned, Pruning, RetentionWalk
from hooksaga.runtime.settings import InvalidSettings, read_settings


def test_each_kind_has_its_age_and_what_has_none_is_kept() -> None:
    policy = RetentionPolicy(deliveries=timedelta(days=30), events=timedelta(days=90))
    assert policy.kinds == [RetentionKind.DELIVERIES, RetentionKind.EVENTS]
    assert policy.age_of(RetentionKind.PAYLOADS) is None
    assert RetentionPolicy().kinds == []


@pytest.mark.parametrize(
    ("batch", "seconds", "following"),
    [
        (1000, BATCH_SECONDS * 2, 500),
        (1001, BATCH_SECONDS * 2, 500),
        (1000, BATCH_SECONDS, 1125),
        (1001, BATCH_SECONDS / 2, 1126),
    ],
)
def test_a_slow_batch_halves_the_next_and_a_quick_one_lets_it_grow(
    batch: int, seconds: float, following: int
) -> None:
    """A batch is a number of whole rows, for LIMIT."""
    assert repr(Pace(batch).after(seconds).batch) == str(following)


@pytest.mark.parametrize(("seconds", "end"), [(10.0, SMALLEST_BATCH), (0.0, MAX_BATCH)])
def test_a_batch_has_its_bounds(seconds: float, end: int) -> None:
    pace = Pace()
    for _ in range(100):
        pace = pace.after(seconds)
    assert pace.batch == end


@pytest.mark.parametrize(("seconds", "rest"), [(0.1, 0.4), (0.0, MIN_REST), (100.0, MAX_REST)])
def test_it_rests_four_times_as_long_as_the_batch_took(seconds: float, rest: float) -> None:
    assert Pace().after(seconds).rest_seconds == pytest.approx(rest)


def test_everything_is_kept_unless_an_age_is_set() -> None:
    assert read_settings().retention_policy == RetentionPolicy()


def test_an_event_takes_its_deliveries_along() -> None:
    policy = read_settings(event_days=90).retention_policy
    assert policy.deliveries == policy.events == timedelta(days=90)


@pytest.mark.parametrize(
    ("ages", "names"),
    [
        ({"retention_days": 30, "event_days": 29}, ("HOOKSAGA_EVENT_DAYS", "HOOKSAGA_RETENTION_DAYS")),
        (
            {"retention_days": 30, "dead_letter_days": 29},
            ("HOOKSAGA_DEAD_LETTER_DAYS", "HOOKSAGA_RETENTION_DAYS"),
        ),
        ({"payload_days": 31, "event_days": 30}, ("HOOKSAGA_PAYLOAD_DAYS", "HOOKSAGA_EVENT_DAYS")),
    ],
)
def test_ages_that_contradict_each_other_are_refused_with_both_names(
    ages: dict[str, float], names: tuple[str, str]
) -> None:
    with pytest.raises(InvalidSettings) as refused:
        read_settings(**ages)
    assert all(name in str(refused.value) for name in names)


async def test_a_batch_that_the_database_ends_is_repeated_with_half_as_many_rows() -> None:
    walk, asked = RetentionWalk(RetentionPolicy(events=timedelta(days=1))), list[int]()

    async def ended(wanted: Pruning, _: Place | None) -> Pruned:
        asked.append(wanted.batch)
        raise DatabaseUnavailable("canceling statement due to statement timeout")

    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            await walk.step(ended)
    assert asked == [1000, 500]
