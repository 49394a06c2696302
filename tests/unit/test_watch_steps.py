"""The steps of the health monitor, one of which fails."""

import pytest

from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.operations import watch_endpoints
from hooksaga.operations.watch_endpoints import Step, take_steps


async def test_a_step_that_fails_keeps_none_behind_it_from_being_taken() -> None:
    taken: list[Step] = []

    async def take(step: Step) -> None:
        taken.append(step)
        if len(taken) < 3:
            raise ValueError(f"step {len(taken)}")

    with pytest.raises(ValueError, match="step 1"):
        await take_steps(take)
    assert taken == [*watch_endpoints.STEPS]


async def test_without_the_database_none_is_tried() -> None:
    taken: list[Step] = []

    async def take(step: Step) -> None:
        taken.append(step)
        raise DatabaseUnavailable("gone")

    with pytest.raises(DatabaseUnavailable):
        await take_steps(take)
    assert len(taken) == 1


async def test_the_answers_come_in_order() -> None:
    async def take(step: Step) -> Step:
        return step

    assert await take_steps(take) == [*watch_endpoints.STEPS]
