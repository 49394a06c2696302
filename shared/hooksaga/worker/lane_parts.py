"""Shared parts of the lanes of one process, and the state that a lane keeps between two polls."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from msgspec.structs import replace

from hooksaga.adapters.database import Session
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import logger
from hooksaga.stages.deliver import hand_back_jobs
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.worker.result_writer import LOCKED_AT_STOP_SECONDS, LOCKED_PAUSE_SECONDS, ResultWriter
from hooksaga.worker.wide_fan_outs import WideFanOuts

LARGE_PAYLOAD = 4096

PASSED_BY_SECONDS = 1.0
"""A job that could not be claimed is excluded from polls for this time, so that its place goes to the next job of its
subscription: another worker has claimed it, or a session has locked its row."""

MOST_PASSED_BY = 1000


def without_large_payload(result: AttemptResult) -> AttemptResult:
    """Return the job, without its payload if that is large: it is not needed until the result is written."""
    if len(result.job.payload) <= LARGE_PAYLOAD:
        return result
    return replace(result, job=replace(result.job, payload=""))


@dataclass(frozen=True, slots=True)
class LaneParts:
    """Parts that the lanes of one process share."""

    writer: ResultWriter
    settings: Settings
    sender: HttpSender
    box: SecretBox
    worker_id: str
    wide: WideFanOuts


@dataclass(frozen=True, slots=True)
class Ended:
    """POSTs ended since the last poll: quick ones counted by subscription, and the subscriptions that answered."""

    quick: Counter[int] = field(default_factory=Counter)
    answered: set[int] = field(default_factory=set)


class HandBack:
    """Hands claimed jobs back, so that they wait again as if they had not been claimed."""

    def __init__(self, session: Session, worker_id: str) -> None:
        self._session = session
        self._worker_id = worker_id
        self.locked: list[ClaimedJob] = []

    async def give(self, jobs: Sequence[ClaimedJob]) -> None:
        """Hand back these jobs, and those whose rows were locked the last time."""
        jobs, self.locked = [*self.locked, *jobs], []
        if not jobs:
            return
        try:
            self.locked += await self._session.run(
                lambda connection: hand_back_jobs(connection, jobs, worker_id=self._worker_id)
            )
        except DatabaseUnavailable as error:
            logger.warning("jobs not handed back", extra={"jobs": len(jobs), "error": str(error)})

    async def give_locked(self) -> None:
        """Retry the jobs whose rows were locked, for LOCKED_AT_STOP_SECONDS."""
        give_up_at = time.monotonic() + LOCKED_AT_STOP_SECONDS
        while self.locked and time.monotonic() < give_up_at:
            await asyncio.sleep(LOCKED_PAUSE_SECONDS)
            await self.give([])


class PassedBy:
    """Ids of jobs that could not be claimed a moment ago."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def add(self, job_ids: Set[int]) -> None:
        """Exclude these jobs from polls for PASSED_BY_SECONDS."""
        self._until |= dict.fromkeys(job_ids, time.monotonic() + PASSED_BY_SECONDS)
        for job_id in list(self._until)[:-MOST_PASSED_BY]:
            del self._until[job_id]

    def ids(self) -> list[int]:
        """Return the ids that are still excluded."""
        now = time.monotonic()
        self._until = {job_id: until for job_id, until in self._until.items() if now < until}
        return list(self._until)

    def clear(self) -> None:
        self._until.clear()
