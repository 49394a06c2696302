"""What is offered to the lane that overtakes is chosen in the end, however few places there are."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from hooksaga.core.saga import SagaStatus
from hooksaga.runtime.settings import Settings
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.worker.lane_parts import LaneParts
from hooksaga.worker.overtaking_lane import OvertakingLane
from hooksaga.worker.places import Pool
from hooksaga.worker.wide_fan_outs import WideFanOuts

NOT_REACHED = cast(Any, None)


class ChoosingLane(OvertakingLane):
    """Chooses what to claim, and claims nothing."""

    async def choose(self) -> list[int]:
        return await self._find()


@pytest.fixture
def lane() -> ChoosingLane:
    """With two places, of which one subscription may have one."""
    parts = LaneParts(NOT_REACHED, Settings(), NOT_REACHED, NOT_REACHED, "worker", WideFanOuts())
    return ChoosingLane(Pool(16), NOT_REACHED, asyncio.Event(), parts)


def move(job_id: int, subscription_id: int) -> SagaMoved:
    moved = (UUID(int=1), subscription_id, SagaStatus.IN_PROGRESS, 0, datetime.now(UTC), None)
    return SagaMoved(job_id, *moved, job_id=job_id)


async def test_what_finds_no_place_waits_for_one_and_not_for_its_turn(lane: ChoosingLane) -> None:
    lane.offer([move(job_id, 7) for job_id in range(1, 5)])
    assert [await lane.choose() for _ in range(5)] == [[1], [2], [3], [4], []]


async def test_who_has_all_its_places_holds_up_no_other(lane: ChoosingLane) -> None:
    lane.offer([move(1, 7), move(2, 7), move(3, 8)])
    assert [await lane.choose() for _ in range(3)] == [[1, 3], [2], []]
