"""One invocation of the orchestrator: its stages, repeated while there is time, and the messages that follow."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from hooksaga.aws.dispatch import dispatch_jobs, send_move_messages, wake_later
from hooksaga.aws.function import Function, Invocation
from hooksaga.core.errors import RowRefused
from hooksaga.stages.apply_results import apply_results
from hooksaga.stages.end_waiting import cancel_saga
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.start_attempts import Started, start_attempts
from hooksaga.stages.start_plan import BATCH
from hooksaga.stages.telemetry import note_moves, note_refused
from hooksaga.stages.undispatched import find_undispatched_jobs
from hooksaga.stages.wakes import FIRST, unapplied_results, waiting_subscriptions

LEFT_PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.4)
"""What another orchestrator has locked is tried again after these pauses: its transaction takes milliseconds."""

MIN_WAIT = timedelta(seconds=0.5)
"""SQS delays by whole seconds. If a subscription could be due again sooner, each message would bring forth another
before it arrives."""

CLOCKS_APART_SECONDS = 0.1
"""A delayed message is to arrive after its time by the database's clock, not before."""

AGAIN_SECONDS = 1.0


class Turn:
    """What one invocation does. moved: how many sagas; refusals: what the database does not take."""

    def __init__(self, function: Function, invocation: Invocation) -> None:
        self.moved = 0
        self.refusals: list[RowRefused] = []
        self._function = function
        self._invocation = invocation
        self._policy = function.settings.retry_policy
        self._wakes: dict[int, datetime] = {}
        self._traces: dict[int, str] = {}

    def _has_time(self) -> bool:
        return self._invocation.seconds_left() > 0

    async def apply(self, job_ids: Collection[int]) -> tuple[list[SagaMoved], set[int]]:
        """Apply the results of these jobs. Returns the moves, and the jobs whose results are left."""
        moves, left = list[SagaMoved](), set(job_ids)
        for pause in (*LEFT_PAUSES_SECONDS, 0):
            if not left or not self._has_time():
                break
            missed: set[int] = set()
            moves += await self._apply(sorted(left), missed.add)
            left = missed - {move.job_id for move in moves}
            await asyncio.sleep(pause if left else 0)
        return moves, left

    async def apply_all(self) -> None:
        """Apply all results that wait, and start what they have made room for."""
        after: Sequence[int] | None = FIRST
        while after is not None and self._has_time():
            job_ids, after = await self._function.session.run(unapplied_results, after=after)
            moves, _ = await self.apply(job_ids)
            await self.start({move.subscription_id for move in moves if move.made_room})

    async def _apply(self, job_ids: list[int], on_left: Callable[[int], None]) -> list[SagaMoved]:
        unit = partial(apply_results, defaults=self._policy, job_ids=job_ids, on_left=on_left)
        try:
            moves = await self._function.session.run(unit)
        except RowRefused as refused:
            moves = self._note_refused(refused)
        for move in moves:
            if move.wake_at is not None:
                self._wakes[move.subscription_id] = move.wake_at
        await self._tell(moves)
        return moves

    async def cancel(self, saga_id: int) -> SagaMoved:
        """End a waiting saga. Raises Conflict or NotFound, as the stage does."""
        move = await self._function.session.run(cancel_saga, self._policy, saga_id)
        await self._tell([move])
        return move

    async def start(self, subscription_ids: Collection[int]) -> set[int]:
        """Start what is due and has room, until there is no more. Returns the subscriptions of which sagas moved.

        What is left when the time is over, or is locked for longer than all pauses, gets a message.
        """
        moved, todo, pauses = set[int](), sorted(subscription_ids), list(LEFT_PAUSES_SECONDS)
        while todo and self._has_time():
            started = await self._start(todo, 0)
            moved |= {move.subscription_id for move in started.moves}
            todo = started.again
            if started.moves:
                pauses = list(LEFT_PAUSES_SECONDS)
            elif todo and not pauses:
                break
            elif todo:
                await asyncio.sleep(pauses.pop(0))
        soon = datetime.now(UTC) + timedelta(seconds=AGAIN_SECONDS - CLOCKS_APART_SECONDS)
        self._wakes.update(dict.fromkeys(todo, soon))
        return moved

    async def start_woken(self) -> None:
        """Start what is due of a batch of subscriptions whose wake_at has come."""
        if self._has_time():
            await self.start((await self._start([], BATCH)).again)

    async def start_waiting(self) -> None:
        """Start what is due of all subscriptions with waiting sagas, a batch of them at a time."""
        after: int | None = 0
        while after is not None and self._has_time():
            page, after = await self._function.session.run(waiting_subscriptions, after=after)
            await self.start(page)

    async def _start(self, subscription_ids: list[int], most_woken: int) -> Started:
        unit = partial(
            start_attempts,
            defaults=self._policy,
            subscription_ids=subscription_ids,
            most_woken=most_woken,
            least_wait=MIN_WAIT,
        )
        try:
            started = await self._function.session.run(unit)
        except RowRefused as refused:
            moves = self._note_refused(refused)
            to_repeat = {move.subscription_id for move in moves} - {
                row.subscription_id for row in refused.rows
            }
            started = Started(moves, again=sorted(to_repeat))
        self._wakes.update(started.wake_at)
        await self._tell(started.moves)
        return started

    async def redispatch(self) -> int:
        """Send the jobs that wait without a message in a queue. Returns how many."""
        told = 0
        seconds = self._function.settings.redispatch_seconds
        while self._has_time():
            jobs = await self._function.session.run(find_undispatched_jobs, redispatch_seconds=seconds)
            sent = await dispatch_jobs(self._function.queues, self._function.session, jobs)
            told += sent
            if sent < len(jobs) or len(jobs) < BATCH:  # a queue that takes nothing is not asked again
                break
        return told

    async def send_wakes(self) -> None:
        """Send one message for each subscription whose wake_at has changed, to arrive then."""
        now = datetime.now(UTC)
        waits = {
            subscription_id: (wake_at - now).total_seconds() + CLOCKS_APART_SECONDS
            for subscription_id, wake_at in self._wakes.items()
        }
        self._wakes = {}
        await wake_later(self._function.queues, waits, self._traces)

    def _note_refused(self, refused: RowRefused) -> list[SagaMoved]:
        """Return the moves of the others, which are committed."""
        told = {row for before in self.refusals for row in before.rows}
        note_refused(row for row in refused.rows if row not in told)
        self.refusals.append(refused)
        return list(refused.done)

    async def _tell(self, moves: list[SagaMoved]) -> None:
        self.moved += len(moves)
        self._traces |= {move.subscription_id: move.correlation_id for move in moves}
        note_moves(moves)
        await send_move_messages(self._function.queues, self._function.session, moves)
