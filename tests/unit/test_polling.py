"""How long a loop of polling mode rests after failures."""

from itertools import pairwise

from infra.local.polling import rest_after


def test_a_loop_rests_longer_after_each_failure_and_never_for_long() -> None:
    rests = [rest_after(failures) for failures in range(1, 10)]
    assert rests[0] == 0.2
    assert all(before <= after for before, after in pairwise(rests))
    assert rests[-1] == 5.0


def test_failures_for_days_are_no_fault_of_the_loop() -> None:
    assert rest_after(100_000) == 5.0
