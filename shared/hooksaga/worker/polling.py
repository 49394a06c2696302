"""Polling mode: every stage as a loop in one process, woken at once by the previous stage, polling otherwise.

Several processes may share one database: each skips rows that another has locked. A wake is a hint; a loop that misses
it finds the work by SQL at the next poll.

An event with very many subscriptions does not block others: events with few are routed, started and claimed beside it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.errors import RefusedRow, RowRefused
from hooksaga.core.outcomes import GONE
from hooksaga.core.saga import SagaStatus
from hooksaga.runtime.settings import Settings
from hooksaga.stages import orchestrate, route_events
from hooksaga.stages.deliver import Lane
from hooksaga.stages.saga_rows import SagaMoved
from hooksaga.stages.telemetry import note_moves, note_refused, note_routed
from hooksaga.worker.delivery_lane import DeliveryLane
from hooksaga.worker.gone_workers import LOOK_SECONDS
from hooksaga.worker.lane_parts import LaneParts
from hooksaga.worker.loops import POLL_SECONDS, Step, rest, run_loop
from hooksaga.worker.overtaking_lane import OvertakingLane
from hooksaga.worker.part_pace import PartPace
from hooksaga.worker.places import Pool
from hooksaga.worker.refused_rows import RefusedRows
from hooksaga.worker.result_writer import GATHER_SECONDS, MANY, ResultWriter
from hooksaga.worker.upkeep import WATCH_SECONDS, Upkeep
from hooksaga.worker.wakes import Wakes
from hooksaga.worker.wide_fan_outs import WideFanOuts
from hooksaga.worker.worker_identity import new_worker_id

SHORTEST_REST_SECONDS = 0.02
RETRY_SHARE = 4
"""One POST place in this many belongs to retries, the others to first attempts."""


class PollingWorker:
    """All loops of one process. `run` continues until `stop` is called, then waits for POSTs in flight."""

    def __init__(
        self, settings: Settings, address: DatabaseAddress, sender: HttpSender, box: SecretBox
    ) -> None:
        self.wakes = Wakes()
        self.worker_id = new_worker_id()
        self._settings = settings
        self._stopping = asyncio.Event()
        self._clean_now = asyncio.Event()
        self._give_back_now = asyncio.Event()
        self._bulk_now = asyncio.Event()
        self._next_due_at = 0.0
        self._refused_at = -POLL_SECONDS
        self._refused = RefusedRows()
        self._router = Session(address, Role.ROUTER)
        self._wide = WideFanOuts()
        self._pace = PartPace(settings.fan_out_rate)
        self._starter = Session(address, Role.ORCHESTRATOR)
        self._overtaker = Session(address, Role.ORCHESTRATOR)
        self._canceler = Session(address, Role.ORCHESTRATOR)
        self._applier = Session(address, Role.ORCHESTRATOR)
        self._writer = ResultWriter(Session(address, Role.DELIVERY), self.worker_id, self.wakes.apply)
        self._upkeep = Upkeep(
            settings, address, self.wakes, self._writer, self._refused, self._look_when_next_is_due
        )
        parts = LaneParts(self._writer, settings, sender, box, self.worker_id, self._wide)
        retry_places = max(1, settings.concurrency // RETRY_SHARE)
        first, retry = Pool(settings.concurrency - retry_places), Pool(retry_places)
        by_id, in_turn, retries = (Session(address, Role.DELIVERY) for _ in range(3))
        self._overtaking = OvertakingLane(first, by_id, self.wakes.claim_overtaking, parts)
        self._lanes = {
            self._overtaking: self.wakes.claim_overtaking,
            DeliveryLane(Lane.FIRST, first, in_turn, self.wakes.first, parts): self.wakes.first,
            DeliveryLane(Lane.RETRY, retry, retries, self.wakes.retry, parts): self.wakes.retry,
        }

    async def run(self) -> None:
        """Run until stopped. A fault of one loop is logged, and that loop tries again; the others continue."""
        wakes, lanes, upkeep = self.wakes, self._lanes, self._upkeep
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._loop("router", self._route, wakes.route, self._until_next_part)),
                group.create_task(
                    self._loop("orchestrator", self._start, wakes.start, self._until_next_is_due)
                ),
                group.create_task(self._loop("orchestrator", self._start_overtaking, wakes.start_overtaking)),
                group.create_task(self._loop("orchestrator", self._apply, wakes.apply)),
                group.create_task(
                    self._loop("lease_cleaner", upkeep.clean, self._clean_now, lambda: upkeep.clean_rest)
                ),
                group.create_task(
                    self._loop("lease_cleaner", upkeep.give_back, self._give_back_now, lambda: LOOK_SECONDS)
                ),
                group.create_task(self._loop("bulk_operations", upkeep.step_bulk, self._bulk_now)),
                group.create_task(
                    self._loop("health_monitor", upkeep.watch, wakes.watch, lambda: WATCH_SECONDS)
                ),
                *(group.create_task(self._loop("delivery", lane.step, wake)) for lane, wake in lanes.items()),
            ]
            writing = group.create_task(self._writer.run())
            await asyncio.wait(loops)
            await asyncio.gather(*(lane.drain() for lane in lanes))
            self._writer.stop()
            await writing
        await upkeep.note_rest()
        await self._close()

    def stop(self) -> None:
        """Stop claiming; `run` returns once all POSTs in flight have ended or their jobs were handed back."""
        self._stopping.set()
        wakes = [getattr(self.wakes, one.name) for one in fields(Wakes)]
        for event in (*wakes, self._clean_now, self._give_back_now, self._bulk_now):
            event.set()
        for lane in self._lanes:
            lane.stop()

    def events_accepted(self) -> None:
        """Wake the router: the outbox has new events."""
        self.wakes.route.set()

    async def cancel_saga(self, saga_id: int) -> None:
        """End a waiting saga. Raises Conflict or NotFound, as the stage does.

        It may have to wait for a lock, so it uses its own session.
        """
        policy = self._settings.retry_policy
        move = await self._canceler.run(
            lambda connection: orchestrate.cancel_saga(connection, policy, saga_id)
        )
        note_moves([move])

    def _loop(
        self,
        name: str,
        step: Step,
        wake: asyncio.Event,
        rest_seconds: Callable[[], float] = lambda: POLL_SECONDS,
    ) -> Coroutine[Any, Any, None]:
        return run_loop(name, step, wake, self._stopping, rest_seconds)

    async def _route(self) -> bool:
        go_on = self._pace.may_go_on()
        refused: list[RefusedRow] = []
        routed = await self._router.run(
            partial(
                route_events.route_events,
                part_size=self._pace.part_size,
                go_on=go_on,
                on_refusal=refused.append,
            )
        )
        self._note_refused(refused)
        self._pace.note_routed(routed.events, went_on=go_on)
        self._wide.note_routed(routed.events)
        if any(event.saga_ids for event in routed.events):
            self.wakes.start.set()
        if self._wide.has_overtaking:
            self.wakes.start_overtaking.set()
        note_routed(routed)
        return len(routed.events) >= route_events.MAX_EVENTS or any(event.more for event in routed.events)

    def _until_next_part(self) -> float:
        pause = self._pace.until_next_part()
        return POLL_SECONDS if pause is None else pause

    async def _start_overtaking(self) -> bool:
        """Start the sagas that may overtake a wide event."""
        saga_ids = self._wide.take_overtaking(orchestrate.BATCH)
        if not saga_ids:
            return False
        moves = await self._move(self._overtaker, partial(orchestrate.start_attempts_of, saga_ids=saga_ids))
        self._overtaking.offer(moves)
        self._told(moves)
        return True

    async def _start(self) -> bool:
        first = await self._move(self._starter, orchestrate.start_first_attempts)
        if first:
            self._overtaking.offer([move for move in first if self._wide.is_overtaken_by(move.webhook_id)])
            self.wakes.first.set()
        self._wide.note_begun(move.webhook_id for move in first if move.job_id is None)
        self._told(first)
        return await self._start_retries() or self._may_be_more(first)

    async def _start_retries(self) -> bool:
        """Start due retries, if one may be due: an event without retries costs no query."""
        if self._until_next_is_due():
            return False
        retries = await self._move(self._starter, orchestrate.start_due_retries)
        if retries:
            self.wakes.retry.set()
        self._told(retries)
        if self._may_be_more(retries):
            return True
        pause = POLL_SECONDS
        self._next_due_at = time.monotonic() + pause
        if not self._has_refused_row:  # it is overdue, and polling again at once would not help
            soonest = await self._starter.run(orchestrate.seconds_until_next_attempt)
            pause = pause if soonest is None else min(pause, max(SHORTEST_REST_SECONDS, soonest))
        # The earlier of both: another poll may have been requested meanwhile.
        self._next_due_at = min(self._next_due_at, time.monotonic() + pause)
        return False

    def _until_next_is_due(self) -> float:
        """Return the seconds until the next waiting saga is due, at most one poll: another process may add one."""
        return max(0.0, self._next_due_at - time.monotonic())

    def _look_when_next_is_due(self) -> None:
        """Shorten the wait when a saga may be due sooner."""
        self._next_due_at = 0.0
        self.wakes.start.set()

    async def _apply(self) -> bool:
        moves = await self._move(self._applier, orchestrate.apply_results)
        self._told(moves)
        if any(move.status is SagaStatus.PENDING_RETRY for move in moves):
            self._look_when_next_is_due()
        if len(moves) >= MANY:
            await rest(self._stopping, GATHER_SECONDS)
        return self._may_be_more(moves)

    async def _move(
        self, session: Session, stage: Callable[..., Awaitable[list[SagaMoved]]]
    ) -> list[SagaMoved]:
        """Return the moves of a stage. A row that the database rejects is logged, and blocks neither the rest of its
        batch nor the next stage."""
        try:
            return await session.run(partial(stage, defaults=self._settings.retry_policy))
        except RowRefused as refused:
            if not self._has_refused_row:
                self._refused_at = time.monotonic()
            self._note_refused(refused.rows)
            return list(refused.done)

    def _note_refused(self, rows: Sequence[RefusedRow]) -> None:
        note_refused(self._refused.new_of(rows))

    def _may_be_more(self, moves: Sequence[SagaMoved]) -> bool:
        """Return whether more may wait than one poll takes. New work sets a wake."""
        return len(moves) >= orchestrate.BATCH or (bool(moves) and self._has_refused_row)

    @property
    def _has_refused_row(self) -> bool:
        """Return whether a row was rejected within one poll interval: such a row is retried no more often than that."""
        return time.monotonic() < self._refused_at + POLL_SECONDS

    def _told(self, moves: Sequence[SagaMoved]) -> None:
        note_moves(moves)
        if any(move.status is SagaStatus.DEAD_LETTERED or move.final_error_code == GONE for move in moves):
            self.wakes.watch.set()  # there may be subscribers to it, or the endpoint is due to be disabled

    async def _close(self) -> None:
        steady = (
            self._router,
            self._starter,
            self._overtaker,
            self._canceler,
            self._applier,
        )
        for session in steady:
            await session.close()
        for lane in self._lanes:
            await lane.close()
        await self._upkeep.close()
        await self._writer.close()
