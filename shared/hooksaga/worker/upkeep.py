"""Maintenance steps of polling mode beside the pipeline: leases, bulk operations, endpoint health, retention."""

from collections.abc import Callable, Sequence
from functools import partial

from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.core.errors import DatabaseUnavailable, RefusedRow
from hooksaga.operations import bulk_steps, erasures, watch_endpoints, work_state
from hooksaga.operations.prune import Place, Pruned, Pruning, RetentionWalk, plan_retention, prune_batch
from hooksaga.operations.telemetry import (
    note_bulk_step,
    note_erased,
    note_lag,
    note_pruned,
    note_watched,
)
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import clean_leases
from hooksaga.stages.clean_leases import LeaseReset
from hooksaga.stages.telemetry import note_refused, note_resets
from hooksaga.worker.gone_workers import give_back_leases_of_gone_workers
from hooksaga.worker.refused_rows import RefusedRows
from hooksaga.worker.result_writer import ResultWriter
from hooksaga.worker.wakes import Wakes

WATCH_SECONDS = 15.0
ERASE_SECONDS = 2.0
"""Rest after a look for running erasures: they are rare, but their caller waits."""

BULK_HORIZON_SECONDS = 3.0
"""How far ahead the sagas of bulk operations are started: a few polls, so that a late poll leaves no gap."""


class Upkeep:
    """Maintenance steps. Each returns whether more may wait. `sagas_started` is called when a step started sagas."""

    def __init__(
        self,
        settings: Settings,
        address: DatabaseAddress,
        wakes: Wakes,
        writer: ResultWriter,
        refused: RefusedRows,
        sagas_started: Callable[[], None],
    ) -> None:
        self.clean_rest = min(15.0, settings.lease_seconds / 4)
        self._settings = settings
        self._wakes = wakes
        self._writer = writer
        self._refused = refused
        self._sagas_started = sagas_started
        self._blocked_bulk: frozenset[int] = frozenset()
        self._cleaner = Session(address, Role.LEASE_CLEANER)
        self._bulk = Session(address, Role.ADMIN)
        self._monitor = Session(address, Role.HEALTH_MONITOR)
        self._retention = Session(address, Role.RETENTION)
        self._eraser = Session(address, Role.RETENTION)
        self._walk = RetentionWalk(settings.retention_policy)

    async def watch(self) -> bool:
        async def take(step: watch_endpoints.Step) -> bool:
            done = await self._monitor.run(partial(step, policy=self._settings.health_policy))
            note_watched(done)
            note_refused(self._refused.new_of(done.refused))
            if done.events:
                self._wakes.route.set()
            return done.more

        return any(await watch_endpoints.take_steps(take))

    async def clean(self) -> bool:
        await self._cleaner.run(work_state.begin_work)
        refused: list[RefusedRow] = []
        resets = await self._cleaner.run(
            partial(
                clean_leases.clean_leases,
                on_refusal=refused.append,
                max_lost_leases=self._settings.max_lost_leases,
                in_hand=self._writer.in_hand,
            )
        )
        note_refused(self._refused.new_of(refused))
        note_resets(resets)
        return self._waits_again(resets)

    async def give_back(self) -> bool:
        limit = self._settings.max_lost_leases
        return self._waits_again(
            await give_back_leases_of_gone_workers(self._cleaner, self._writer.worker_id, limit)
        )

    def _waits_again(self, resets: Sequence[LeaseReset]) -> bool:
        """Wake the stages that continue with the reset jobs. Returns True when there may be more."""
        if resets:
            for event in (self._wakes.quick, self._wakes.slow, self._wakes.apply):
                event.set()
        return len(resets) == clean_leases.BATCH

    async def step_bulk(self) -> bool:
        """Step one operation. One that can start nothing now is skipped until the next poll."""
        step = await self._bulk.run(
            lambda connection: bulk_steps.step_bulk_operation(
                connection, horizon_seconds=BULK_HORIZON_SECONDS, passed_by=self._blocked_bulk
            )
        )
        note_bulk_step(step)
        note_refused(self._refused.new_of(step.refused))
        if step.saga_ids:
            self._sagas_started()
        if step.operation_id is None:
            self._blocked_bulk = frozenset()
            return False
        if not step.saga_ids:
            self._blocked_bulk |= {step.operation_id}
        return True

    async def erase(self) -> bool:
        """Take one step of a running erasure. Returns whether the next can follow at once."""
        step = await self._eraser.run(erasures.step_erasure)
        note_erased(step)
        if step.ended:
            self._sagas_started()
        return step.more

    @property
    def retain_rest(self) -> float:
        return self._walk.rest_seconds

    async def retain(self) -> bool:
        """Delete one batch of what is old enough. Returns False: it rests after each batch, as its pace says."""
        if self._walk.begins:
            policy = self._settings.retention_policy
            note_lag(await self._retention.run(partial(plan_retention, policy=policy)))

        async def run(wanted: Pruning, after: Place | None) -> Pruned:
            return await self._retention.run(partial(prune_batch, wanted=wanted, after=after))

        done = await self._walk.step(run)
        if done is not None:
            note_pruned(done)
        return False

    async def note_rest(self) -> None:
        try:
            await self._cleaner.run(work_state.end_work)
        except DatabaseUnavailable as error:
            logger.warning("database unavailable", extra={"loop": "lease_cleaner", "error": str(error)})

    async def close(self) -> None:
        for session in (self._cleaner, self._bulk, self._monitor, self._retention, self._eraser):
            await session.close()
