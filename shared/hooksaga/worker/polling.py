"""Polling mode: every stage as a loop in one process, woken at once by the previous stage, polling otherwise.

Several processes may share one database: each skips rows that another has locked. A wake is a hint; a loop that misses
it finds the work by SQL at the next poll.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import fields
from functools import partial
from typing import Any

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.errors import RefusedRow
from hooksaga.runtime.settings import Settings
from hooksaga.stages import route_events
from hooksaga.stages.telemetry import note_refused, note_routed
from hooksaga.worker.delivery_lane import DeliveryLane, LaneParts
from hooksaga.worker.gone_workers import LOOK_SECONDS
from hooksaga.worker.loops import IDLE_SECONDS, POLL_SECONDS, Step, run_loop
from hooksaga.worker.places import WorkerPlaces
from hooksaga.worker.refused_rows import RefusedRows
from hooksaga.worker.result_writer import ResultWriter
from hooksaga.worker.starter import Starter
from hooksaga.worker.upkeep import ERASE_SECONDS, WATCH_SECONDS, Upkeep
from hooksaga.worker.wakes import Wakes
from hooksaga.worker.worker_identity import new_worker_id

SLOW_SHARE = 4
"""One POST place in this many belongs to the lane of slow subscriptions."""

MAX_WIDE = 1000
"""While so many subscriptions of wide events wait to be started, no further parts of wide events are routed."""


class PollingWorker:
    """All loops of one process. `run` continues until `stop` is called, then waits for POSTs in flight."""

    def __init__(
        self, settings: Settings, address: DatabaseAddress, sender: HttpSender, box: SecretBox
    ) -> None:
        self.wakes = Wakes()
        self.worker_id = new_worker_id()
        self._settings = settings
        self._stopping = asyncio.Event()
        self._own_wakes: list[asyncio.Event] = []
        self._refused = RefusedRows()
        self._router = Session(address, Role.ROUTER)
        slow_places = max(1, settings.concurrency // SLOW_SHARE)
        places = WorkerPlaces(settings.concurrency - slow_places, slow_places)
        self._starter = Starter(settings, address, self.wakes, self._refused, self._stopping, places)
        self._writer = ResultWriter(
            Session(address, Role.DELIVERY), self.worker_id, self._starter.note_results
        )
        self._upkeep = Upkeep(settings, address, self.wakes, self._writer, self._refused, self.sagas_started)
        parts = LaneParts(
            self._writer, settings, sender, box, self.worker_id, places, on_claimed=self._starter.note_claimed
        )
        self._lanes = {
            DeliveryLane(slow=slow, session=Session(address, Role.DELIVERY), wake=wake, parts=parts): wake
            for slow, wake in ((False, self.wakes.quick), (True, self.wakes.slow))
        }

    async def run(self) -> None:
        """Run until stopped. A fault of one loop is logged, and that loop tries again; the others continue."""
        wakes, starter, upkeep = self.wakes, self._starter, self._upkeep
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(loop)
                for loop in (
                    self._loop("router", self._route, wakes.route),
                    self._loop("orchestrator", starter.step, wakes.start, starter.rest_seconds),
                    self._loop("orchestrator", starter.apply, wakes.apply, lambda: IDLE_SECONDS),
                    self._loop("orchestrator", starter.walk, self._own_wake(), lambda: starter.walk_rest),
                    self._loop("lease_cleaner", upkeep.clean, self._own_wake(), lambda: upkeep.clean_rest),
                    self._loop("lease_cleaner", upkeep.give_back, self._own_wake(), lambda: LOOK_SECONDS),
                    self._loop("bulk_operations", upkeep.step_bulk, self._own_wake()),
                    self._loop("erasure", upkeep.erase, self._own_wake(), lambda: ERASE_SECONDS),
                    self._loop("retention", upkeep.retain, self._own_wake(), lambda: upkeep.retain_rest),
                    self._loop("health_monitor", upkeep.watch, wakes.watch, lambda: WATCH_SECONDS),
                    *(
                        self._loop("delivery", lane.step, wake, lambda: IDLE_SECONDS)
                        for lane, wake in self._lanes.items()
                    ),
                )
            ]
            writing = group.create_task(self._writer.run())
            await asyncio.wait(loops)
            await asyncio.gather(*(lane.drain() for lane in self._lanes))
            self._writer.stop()
            await writing
        await upkeep.note_rest()
        await self._close()

    def stop(self) -> None:
        """Stop claiming; `run` returns once all POSTs in flight have ended or their jobs were handed back."""
        self._stopping.set()
        wakes = [getattr(self.wakes, one.name) for one in fields(Wakes)]
        for event in (*wakes, *self._own_wakes):
            event.set()
        for lane in self._lanes:
            lane.stop()

    def _own_wake(self) -> asyncio.Event:
        """Make the event of a loop that only the stop wakes from its rest."""
        self._own_wakes.append(asyncio.Event())
        return self._own_wakes[-1]

    def events_accepted(self) -> None:
        """Wake the router: the outbox has new events."""
        self.wakes.route.set()

    def sagas_started(self) -> None:
        """Wake the starter: there are new sagas, of a requeue or a bulk operation."""
        self._starter.look_when_next_is_due()

    def _loop(
        self,
        name: str,
        step: Step,
        wake: asyncio.Event,
        rest_seconds: Callable[[], float] = lambda: POLL_SECONDS,
    ) -> Coroutine[Any, Any, None]:
        return run_loop(name, step, wake, self._stopping, rest_seconds)

    async def _route(self) -> bool:
        queue = self._starter.queue
        refused: list[RefusedRow] = []
        routed = await self._router.run(
            partial(route_events.route_events, go_on=queue.wide < MAX_WIDE, on_refusal=refused.append)
        )
        note_refused(self._refused.new_of(refused))
        for event in routed.events:
            queue.put_event(event.subscription_ids, whole=event.whole)
        if len(queue):
            self.wakes.start.set()
        note_routed(routed)
        return len(routed.events) >= route_events.MAX_EVENTS or any(
            event.more or not event.whole for event in routed.events
        )

    async def _close(self) -> None:
        await self._router.close()
        await self._starter.close()
        for lane in self._lanes:
            await lane.close()
        await self._upkeep.close()
        await self._writer.close()
