"""The delivery loop of polling mode: claims as many jobs as there are free places, POSTs them side by side, and
writes results in batches while other POSTs go on.

Fairness: a subscription may hold at most as many places as stay free after it got them. One endpoint that hangs
holds half of a lane at the most, two hold a third each, and there is always room for the next one.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence

from shared.adapters.database import Session
from shared.adapters.http_sender import HttpSender
from shared.adapters.secret_box import SecretBox
from shared.core.errors import DatabaseUnavailable
from shared.runtime import telemetry
from shared.runtime.settings import Settings
from shared.stages import deliver
from shared.stages.deliver import AttemptResult, ClaimedJob, Lane, WaitingJobs

SHUTDOWN_SECONDS = 20
"""At shutdown, what is in flight may take this long to end; the rest is handed back."""


class ResultWriter:
    """Writes results of all lanes through one session: whatever has gathered goes in one statement."""

    def __init__(self, session: Session, worker_id: str, applied: asyncio.Event) -> None:
        self._session = session
        self._worker_id = worker_id
        self._results_ready = applied
        self._waiting: list[tuple[AttemptResult, asyncio.Future[None]]] = []
        self._more = asyncio.Event()
        self._stopping = False

    async def write(self, result: AttemptResult) -> None:
        """Returns once the result is committed, or was dropped because its lease was lost."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((result, written))
        self._more.set()
        await written

    async def run(self) -> None:
        """Write until stopped. While the database is away results are kept, and tried again."""
        while not self._stopping or self._waiting:
            await self._more.wait()
            self._more.clear()
            batch, self._waiting = self._waiting, []
            if batch:
                await self._write_until_done([result for result, _ in batch])
                for _, written in batch:
                    if not written.done():
                        written.set_result(None)

    async def _write_until_done(self, results: Sequence[AttemptResult]) -> None:
        pause = 0.1
        while True:
            try:
                written = await self._session.run(
                    lambda connection: deliver.record_results(connection, results, worker_id=self._worker_id)
                )
            except DatabaseUnavailable as error:
                telemetry.logger.warning(
                    "results not written yet", extra={"jobs": len(results), "error": str(error)}
                )
                if self._stopping:
                    return  # their leases end, and the jobs are tried again
                await asyncio.sleep(pause)
                pause = min(5.0, pause * 2)
                continue
            except Exception:  # noqa: BLE001 - a fault of ours: the leases end, the jobs are tried again
                telemetry.logger.exception("results not written", extra={"jobs": len(results)})
                return
            self._results_ready.set()
            telemetry.note_attempts(results, written, self._worker_id)
            return

    def stop(self) -> None:
        """Write what has gathered, then let `run` return."""
        self._stopping = True
        self._more.set()

    async def close(self) -> None:
        await self._session.close()


class DeliveryLane:
    """First attempts or retries, with places of their own for POSTs in flight."""

    def __init__(
        self,
        lane: Lane,
        places: int,
        session: Session,
        writer: ResultWriter,
        settings: Settings,
        sender: HttpSender,
        box: SecretBox,
        worker_id: str,
        wake: asyncio.Event,
    ) -> None:
        self._lane = lane
        self._places = places
        self._session = session
        self._writer = writer
        self._settings = settings
        self._sender = sender
        self._box = box
        self._worker_id = worker_id
        self._in_flight: dict[asyncio.Task[None], ClaimedJob] = {}
        self._per_subscription: Counter[int] = Counter()
        self._place_free = asyncio.Event()
        self._wake = wake
        self._somebody_had_no_room = False
        self._after_subscription = 0
        self._stopping = False

    async def step(self) -> bool:
        """Claim once and begin the POSTs. False when nothing that could be claimed was waiting."""
        await self._wait_for_place()
        if self._stopping:
            return False
        job_ids = await self._find()
        if not job_ids:
            return self._start_over()
        jobs = await self._session.run(
            lambda connection: deliver.claim_jobs(
                connection, job_ids, worker_id=self._worker_id, lease_seconds=self._settings.lease_seconds
            )
        )
        telemetry.note_claimed(jobs)
        if self._stopping:
            await self._hand_back(jobs)
            return False
        claimed_at = time.monotonic()
        for job in jobs:
            self._begin(job, claimed_at)
        return True

    async def _wait_for_place(self) -> None:
        while len(self._in_flight) >= self._places and not self._stopping:
            self._place_free.clear()
            await self._place_free.wait()

    async def _find(self) -> list[int]:
        free = self._places - len(self._in_flight)
        room = {key: max(0, (free - held) // 2) for key, held in self._per_subscription.items()}
        self._somebody_had_no_room = 0 in room.values()
        waiting = await self._session.run(
            lambda connection: deliver.find_waiting_jobs(
                connection,
                self._lane,
                default_room=max(1, free // 2),
                busy=room,
                after_subscription=self._after_subscription,
            )
        )
        return self._take_in_turn(waiting, free)

    def _take_in_turn(self, waiting: Sequence[WaitingJobs], free: int) -> list[int]:
        """One job of each subscription, then a second of each, and so on. The next round begins behind the last
        subscription that got a place, so that a short round never favours low ids."""
        chosen: list[int] = []
        for turn in itertools.count():
            in_turn = [
                (row.subscription_id, row.ids[turn]) for row in waiting if row.ids and turn < len(row.ids)
            ]
            for subscription_id, job_id in in_turn[: free - len(chosen)]:
                chosen.append(job_id)
                self._after_subscription = subscription_id
            if not in_turn or len(chosen) == free:
                break
        return chosen

    def _start_over(self) -> bool:
        """Nothing behind the last subscription: look from the first one on, unless that was just done."""
        was_partial, self._after_subscription = self._after_subscription > 0, 0
        return was_partial

    def _begin(self, job: ClaimedJob, claimed_at: float) -> None:
        task = asyncio.create_task(self._deliver(job, claimed_at))
        self._in_flight[task] = job
        self._per_subscription[job.subscription_id] += 1
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        job = self._in_flight.pop(task)
        self._per_subscription[job.subscription_id] -= 1
        if not self._per_subscription[job.subscription_id]:
            del self._per_subscription[job.subscription_id]
        self._place_free.set()
        if self._somebody_had_no_room:
            self._wake.set()
        if not task.cancelled() and task.exception() is not None:
            telemetry.logger.error(
                "delivery task failed", exc_info=task.exception(), extra={"job_id": job.id}
            )

    async def _deliver(self, job: ClaimedJob, claimed_at: float) -> None:
        timeout = job.timeout_seconds or self._settings.http_timeout_seconds
        if time.monotonic() - claimed_at + timeout > self._settings.lease_seconds:
            await self._hand_back([job])  # the process slept: this POST could outlive its lease
            return
        result = await deliver.attempt(
            self._sender, self._box, job, timeout_seconds=self._settings.http_timeout_seconds
        )
        await self._writer.write(result)

    async def _hand_back(self, jobs: Sequence[ClaimedJob]) -> None:
        try:
            await self._session.run(
                lambda connection: deliver.hand_back_jobs(connection, jobs, worker_id=self._worker_id)
            )
        except DatabaseUnavailable as error:
            telemetry.logger.warning("jobs not handed back", extra={"jobs": len(jobs), "error": str(error)})

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping = True
        self._place_free.set()

    async def drain(self) -> None:
        """Let what is in flight end, for at most SHUTDOWN_SECONDS, and hand back the rest."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=SHUTDOWN_SECONDS)
        rest = dict(self._in_flight)
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.gather(*rest, return_exceptions=True)
            await self._hand_back(list(rest.values()))

    async def close(self) -> None:
        await self._session.close()
