"""How long a loop of polling mode rests."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.runtime.settings import Settings
from hooksaga.stages import orchestrate
from hooksaga.worker.loops import POLL_SECONDS, rest_after
from hooksaga.worker.polling import PollingWorker


def test_a_loop_rests_longer_after_each_failure_and_never_for_long() -> None:
    rests = [rest_after(failures) for failures in range(1, 10)]
    assert rests[0] == 0.2
    assert all(before <= after for before, after in pairwise(rests))
    assert rests[-1] == 5.0


def test_failures_for_days_are_no_fault_of_the_loop() -> None:
    assert rest_after(100_000) == 5.0


async def no_moves(*_: object, **__: object) -> list[Any]:
    return []


@pytest.mark.parametrize("asked_meanwhile", [False, True])
async def test_who_lets_a_saga_wait_while_the_soonest_is_asked_for_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, asked_meanwhile: bool
) -> None:
    nobody: Any = None
    worker = PollingWorker(Settings(), DatabaseAddress("postgresql:///nowhere"), nobody, nobody)

    async def soonest(_connection: object) -> None:
        if asked_meanwhile:
            worker._look_when_next_is_due()

    monkeypatch.setattr(worker, "_starter", SimpleNamespace(run=lambda unit: unit(None)))
    monkeypatch.setattr(orchestrate, "start_due_retries", no_moves)
    monkeypatch.setattr(orchestrate, "seconds_until_next_attempt", soonest)
    assert not await worker._start_retries()
    rest = worker._until_next_is_due()
    assert rest == 0 if asked_meanwhile else 0.9 * POLL_SECONDS < rest <= POLL_SECONDS
