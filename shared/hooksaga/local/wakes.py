"""What the API of one machine tells the stages after a commit."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.trace import Traced
from hooksaga.runtime.settings import Settings
from hooksaga.stages.end_waiting import cancel_saga
from hooksaga.stages.telemetry import note_moves


class Stages(Protocol):
    """The loops of the stages, or the way to them. Both calls are hints."""

    def events_accepted(self) -> None: ...
    def sagas_started(self) -> None: ...


class LocalWakes:
    """Wakes the loops of this machine, and cancels by itself, in a session of its own: that may wait for a lock."""

    def __init__(self, settings: Settings, address: DatabaseAddress, stages: Stages) -> None:
        self._policy = settings.retry_policy
        self._stages = stages
        self._canceler = Session(address, Role.ORCHESTRATOR)

    async def events_accepted(self, events: Sequence[Traced]) -> None:
        self._stages.events_accepted()

    async def subscriptions_due(self, traces: Mapping[int, str | None]) -> None:
        self._stages.sagas_started()

    async def cancel_saga(self, saga: Traced) -> None:
        """End a waiting saga. Raises Conflict or NotFound, as the stage does."""
        note_moves([await self._canceler.run(cancel_saga, self._policy, saga.id)])

    async def close(self) -> None:
        await self._canceler.close()
