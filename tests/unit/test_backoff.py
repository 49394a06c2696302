"""The wait before the next attempt, against the formula as it is documented."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooksaga.core.backoff import RETRY_AFTER_CAP_SECONDS, retry_delay_seconds


def wait(
    attempt: int,
    *,
    saga: int = 1,
    base: float = 30,
    cap: float = 3600,
    jitter: float = 0,
    asked: float | None = None,
) -> float:
    return retry_delay_seconds(
        saga,
        attempt,
        base_delay_seconds=base,
        max_delay_seconds=cap,
        jitter=jitter,
        retry_after_seconds=asked,
    )


def test_the_wait_doubles_from_the_base_to_the_cap() -> None:
    assert [wait(attempt) for attempt in range(1, 10)] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize("attempt", [61, 1_000, 10**9])
def test_no_number_of_attempts_overflows(attempt: int) -> None:
    assert wait(attempt) == 3600


@pytest.mark.parametrize(("base", "cap", "expected"), [(0.1, 3600, 0.1), (7200, 3600, 3600), (30, 5, 5)])
def test_the_cap_holds_for_the_first_wait_too(base: float, cap: float, expected: float) -> None:
    assert wait(1, base=base, cap=cap) == expected


@given(saga=st.integers(1, 2**63 - 1), attempt=st.integers(1, 60), jitter=st.floats(0, 1))
def test_jitter_only_adds_and_never_more_than_its_share(saga: int, attempt: int, jitter: float) -> None:
    plain = wait(attempt, saga=saga)
    assert plain <= wait(attempt, saga=saga, jitter=jitter) <= plain * (1 + jitter)


@given(saga=st.integers(1, 2**63 - 1), attempt=st.integers(1, 50))
def test_jitter_is_the_documented_hash(saga: int, attempt: int) -> None:
    digest = hashlib.sha256(f"{saga}:{attempt}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    assert wait(attempt, saga=saga, jitter=0.1) == pytest.approx(wait(attempt) * (1 + 0.1 * share))


def test_a_wait_of_today_is_the_same_tomorrow() -> None:
    """Changing the hash would move every saga that waits."""
    assert wait(1, saga=42, jitter=0.1) == pytest.approx(30.04532, abs=1e-5)
    assert wait(3, saga=7, jitter=0.1) == pytest.approx(120.80204, abs=1e-5)


def test_sagas_that_failed_together_come_back_apart() -> None:
    waits = [wait(1, saga=saga, jitter=0.1) for saga in range(1_000)]
    assert len(set(waits)) == 1_000
    assert min(waits) < 30.1
    assert max(waits) > 32.9
    assert sum(waits) / 1_000 == pytest.approx(31.5, abs=0.1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, 30), (0, 30), (-5, 30), (29, 30), (31, 31), (3600, 3600), (3601, 3600), (10**12, 3600)],
)
def test_retry_after_only_lengthens_up_to_an_hour(asked: float | None, expected: float) -> None:
    assert wait(1, asked=asked) == expected


@given(asked=st.floats(0, 10**9), attempt=st.integers(1, 60), cap=st.floats(1, 86_400))
def test_retry_after_never_shortens(asked: float, attempt: int, cap: float) -> None:
    plain = wait(attempt, cap=cap)
    assert plain <= wait(attempt, cap=cap, asked=asked) <= max(plain, RETRY_AFTER_CAP_SECONDS)
