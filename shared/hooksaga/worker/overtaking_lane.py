"""First attempts that overtake a wide fan-out: claimed by id as soon as they are started, not in turn."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from hooksaga.adapters.database import Session
from hooksaga.stages.deliver import Lane
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.worker.delivery_lane import DeliveryLane
from hooksaga.worker.lane_parts import Ended, LaneParts
from hooksaga.worker.places import Places, Pool, places_to_overtake
from hooksaga.worker.wide_fan_outs import MOST_OVERTAKING


class OvertakingLane(DeliveryLane):
    """Lane of overtaking jobs, on the places of first attempts. The lane of first attempts finds the jobs left out."""

    def __init__(self, pool: Pool, session: Session, wake: asyncio.Event, parts: LaneParts) -> None:
        super().__init__(Lane.FIRST, pool, session, wake, parts)
        self._offered: deque[tuple[int, int]] = deque(maxlen=MOST_OVERTAKING)

    def offer(self, moves: Sequence[SagaMoved]) -> None:
        """Offer the jobs of these moves for claiming, as far as places allow."""
        self._offered.extend((move.subscription_id, move.job_id) for move in moves if move.job_id)
        if self._offered:
            self._wake.set()

    @property
    def _places(self) -> int:
        return places_to_overtake(self._pool)

    async def _find(self) -> list[int]:
        """Find the ids to claim. Offered jobs of a subscription without a free place here wait for one."""
        self._ended = Ended()  # used by polls, and this lane has none
        places = Places(self._free - len(self._held), self._per_subscription, Counter())
        chosen: list[int] = []
        waiting: list[tuple[int, int]] = []
        while self._offered and len(chosen) < min(self._free, self._memory.room):
            subscription_id, job_id = self._offered.popleft()
            if places.take(subscription_id):
                chosen.append(job_id)
            else:
                waiting.append((subscription_id, job_id))
        self._left_some = bool(self._offered)
        self._offered.extendleft(reversed(waiting))
        self._turns.somebody_had_no_room = bool(waiting)
        return chosen
