"""What the lanes of one process share, and what a lane remembers between two looks."""

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
"""For so long a job that could not be claimed is left out of the looks, so that its place goes to the next one of its
subscription: it is another's by now, or somebody has locked its row."""

MOST_PASSED_BY = 1000


def without_large_payload(result: AttemptResult) -> AttemptResult:
    """It need not be kept until the result is written."""
    if len(result.job.payload) <= LARGE_PAYLOAD:
        return result
    return replace(result, job=replace(result.job, payload=""))


@dataclass(frozen=True, slots=True)
class LaneParts:
    """What the lanes of one process have in common."""

    writer: ResultWriter
    settings: Settings
    sender: HttpSender
    box: SecretBox
    worker_id: str
    wide: WideFanOuts


@dataclass(frozen=True, slots=True)
class Ended:
    """Of POSTs since the last look: how many of each subscription were quick, and which subscriptions answered."""

    quick: Counter[int] = field(default_factory=Counter)
    answered: set[int] = field(default_factory=set)


class HandBack:
    """Gives claimed jobs back, so that they wait again as if they had not been claimed."""

    def __init__(self, session: Session, worker_id: str) -> None:
        self._session = session
        self._worker_id = worker_id
        self.locked: list[ClaimedJob] = []

    async def give(self, jobs: Sequence[ClaimedJob]) -> None:
        """These jobs, and those that somebody had locked the last time."""
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
        """Try those that were locked for LOCKED_AT_STOP_SECONDS more."""
        give_up_at = time.monotonic() + LOCKED_AT_STOP_SECONDS
        while self.locked and time.monotonic() < give_up_at:
            await asyncio.sleep(LOCKED_PAUSE_SECONDS)
            await self.give([])


class PassedBy:
    """Jobs that could not be claimed a moment ago, by id."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def add(self, job_ids: Set[int]) -> None:
        """Leave them out of the looks for PASSED_BY_SECONDS."""
        self._until |= dict.fromkeys(job_ids, time.monotonic() + PASSED_BY_SECONDS)
        for job_id in list(self._until)[:-MOST_PASSED_BY]:
            del self._until[job_id]

    def ids(self) -> list[int]:
        """Those that are still left out."""
        now = time.monotonic()
        self._until = {job_id: until for job_id, until in self._until.items() if now < until}
        return list(self._until)

    def clear(self) -> None:
        self._until.clear()
