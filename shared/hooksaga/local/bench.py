"""`hooksaga bench`: deliveries per second and latency of polling mode, on an empty database of its own.

It runs the process of `hooksaga up`: the same LocalSystem with its HTTP API, its loops, its log (into a file) and a
PostgreSQL that syncs every commit. The receiver is another process on the same machine, which shares the processor;
deliveries go to it over reused TLS connections.

- `seconds`: from just before the first event is sent until no work is open.
- `latency_ms`: for each delivery, from the acceptance of its event (the stage's result, or the 202 as read by the
  client) to its first arrival at the receiver. Without a rate all events are sent as fast as they are accepted, so
  this is the wait in a full queue. For an external URL it ends when the response was recorded, and is taken from at
  most MAX_SAMPLE evenly spaced events.
- `accept_ms`, with a rate: from the due time of a POST to its 202, including the wait for a connection.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any
from uuid import UUID

from hooksaga.adapters.database import Role, Session
from hooksaga.core.event_ids import event_id_text
from hooksaga.core.event_input import EventDraft
from hooksaga.local.api_client import ApiClient, ApiError
from hooksaga.local.bench_figures import BenchResult, make_body, make_payload, percentiles
from hooksaga.local.bench_place import own_folder, running_system
from hooksaga.local.bench_processes import Arrivals, Posted, Posting, child, post, receive
from hooksaga.local.system import LocalSystem
from hooksaga.operations import inspect
from hooksaga.operations.inspect import Stats
from hooksaga.operations.verify_subscription import mark_verified
from hooksaga.stages.accept_events import AcceptedEvent, accept_events

EVENT_TYPE = "bench.event"
BATCH = 500
MIN_POLL_SECONDS = 0.02
MAX_POLL_SECONDS = 0.5
OPEN_PER_POLL_SECOND = 10_000
"""Open work is counted less often the more there is, because counting affects the result."""
STALLED_SECONDS = 60
MAX_SAMPLE = 500
Report = Callable[[str, int, int], None]
"""Called with the current phase, the amount done, and the total."""


class BenchFailed(Exception):
    """There is no result. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """url None: the built-in receiver. rate None: all at once."""

    events: int
    payload_bytes: int
    subscriptions: int = 1
    url: str | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class FeedTimes:
    """Times of the monotonic clock: the start, and the acceptance of each event."""

    started_at: float
    accepted_at: dict[str, float] = field(default_factory=dict[str, float])
    accept_ms: list[float] | None = None


async def run_bench(options: BenchOptions, data_dir: Path, report: Report) -> BenchResult:
    """Run one benchmark and delete everything that it created.

    Raises BenchFailed, ApiError if the URL is rejected, EmbeddedPostgresError.
    """
    async with (
        own_folder(data_dir) as folder,
        _receiver(options, folder) as (receiver, url),
        running_system(folder, trust_own=receiver is not None) as (system, api_url),
    ):
        run = _Run(options, system, api_url, report)
        try:
            return await run.measure(url, receiver)
        finally:
            await run.close()


@asynccontextmanager
async def _receiver(options: BenchOptions, folder: Path) -> AsyncIterator[tuple[Pipe | None, str]]:
    """Return the pipe to the built-in receiver, or None, and the URL for the first subscription."""
    if options.url is not None:
        yield None, options.url
        return
    with child(receive, folder) as pipe:
        yield pipe, f"{await _answer(pipe)}/ok"


async def _answer(pipe: Pipe) -> Any:
    try:
        return await asyncio.to_thread(pipe.recv)
    except EOFError:
        raise BenchFailed("a process of the benchmark ended early") from None


class _Run:
    def __init__(self, options: BenchOptions, system: LocalSystem, api_url: str, report: Report) -> None:
        self._options = options
        self._system = system
        self._api_url = api_url
        self._report = report
        self._admin = Session(system.address, Role.ADMIN)
        self._ingest = Session(system.address, Role.INGEST)
        self._wanted = options.events * options.subscriptions

    async def close(self) -> None:
        await self._admin.close()
        await self._ingest.close()

    async def measure(self, url: str, receiver: Pipe | None) -> BenchResult:
        await self._subscribe(url)
        fed = await (self._feed_at_once() if self._options.rate is None else self._feed_at_rate())
        stats = await self._wait_until_all_ended()
        seconds = time.monotonic() - fed.started_at
        failed = stats.dead_letters_24h
        latencies = await (self._noted(fed) if receiver is None else self._arrived(fed, receiver, failed))
        return BenchResult(
            events=self._options.events,
            subscriptions=self._options.subscriptions,
            payload_bytes=self._options.payload_bytes,
            deliveries=self._wanted - failed,
            failed=failed,
            seconds=round(seconds, 3),
            deliveries_per_second=round((self._wanted - failed) / seconds, 1),
            latency_ms=percentiles(latencies),
            accept_ms=None if fed.accept_ms is None else percentiles(fed.accept_ms),
            processes=self._system.processes,
        )

    async def _subscribe(self, url: str) -> None:
        api = ApiClient(self._api_url, self._system.api_key)
        async with Session(self._system.address, Role.OWNER) as owner:
            for number in range(self._options.subscriptions):
                wanted = {"event_type": EVENT_TYPE, "callback_url": f"{url}/{number}" if number else url}
                await self._subscribe_one(api, owner, wanted)
                self._report("subscribing", number + 1, self._options.subscriptions)

    async def _subscribe_one(self, api: ApiClient, owner: Session, wanted: dict[str, Any]) -> None:
        """Create a subscription. A receiver that does not answer the challenge is marked verified by the database's
        owner."""
        created = await asyncio.to_thread(api.call, "POST", "/v1/subscriptions", json=wanted)
        try:
            await asyncio.to_thread(api.call, "POST", f"/v1/subscriptions/{created['id']}/verify")
        except ApiError as error:
            if error.code != "verification_failed" or self._options.url is None:
                raise
            await owner.run(mark_verified, created["id"], created["callback_url"])

    async def _feed_at_once(self) -> FeedTimes:
        await self._ingest.run(inspect.check_alive)  # open no connection during the measurement
        drafts = [EventDraft(EVENT_TYPE, self._payload(number)) for number in range(self._options.events)]
        fed = FeedTimes(time.monotonic())
        for first in range(0, len(drafts), BATCH):
            batch = drafts[first : first + BATCH]
            answers = await self._ingest.run(accept_events, batch)
            accepted = [answer for answer in answers if isinstance(answer, AcceptedEvent)]
            if len(accepted) < len(batch):
                raise BenchFailed(f"the database refused {len(batch) - len(accepted)} events")
            now = time.monotonic()
            fed.accepted_at.update({event_id_text(event.webhook_id): now for event in accepted})
            self._system.worker.events_accepted()
            self._report("accepting", first + len(batch), len(drafts))
        return fed

    async def _feed_at_rate(self) -> FeedTimes:
        numbers = range(self._options.events)
        bodies = [make_body(EVENT_TYPE, self._payload(number)) for number in numbers]
        posting = Posting(self._api_url, self._system.api_key, bodies, self._options.rate or 1)
        with child(post, posting) as pipe:
            while not isinstance(answer := await _answer(pipe), Posted):
                self._report("posting", answer, self._options.events)
        if answer.refused:
            raise BenchFailed(f"{len(answer.refused)} POSTs failed; the first: {answer.refused[0]}")
        accepted_at = {one.event_id: one.at for one in answer.accepted}
        return FeedTimes(answer.started_at, accepted_at, [one.milliseconds for one in answer.accepted])

    def _payload(self, number: int) -> str:
        return make_payload(number, self._options.payload_bytes)

    async def _wait_until_all_ended(self) -> Stats:
        """Count in one statement, which sees all tables at one moment, so that no work is missed."""
        give_up = time.monotonic() + STALLED_SECONDS
        while still_open := self._open(stats := await self._admin.run(inspect.read_stats)):
            self._report("delivering", max(0, self._wanted - still_open), self._wanted)
            if not stats.delivered_last_minute and time.monotonic() > give_up:
                raise BenchFailed(
                    f"nothing was delivered for {STALLED_SECONDS} s; does the URL answer with 2xx?"
                )
            pause = still_open / OPEN_PER_POLL_SECOND
            await asyncio.sleep(min(MAX_POLL_SECONDS, max(MIN_POLL_SECONDS, pause)))
        return stats

    def _open(self, stats: Stats) -> int:
        """Return the number of unfinished deliveries, including those of unrouted events."""
        jobs = stats.jobs_pending + stats.jobs_leased + stats.results_unapplied
        return stats.outbox * self._options.subscriptions + stats.sagas_waiting + jobs

    async def _arrived(self, fed: FeedTimes, receiver: Pipe, failed: int) -> list[float]:
        receiver.send(None)
        arrivals: Arrivals = await _answer(receiver)
        if len(arrivals.first) < self._wanted - failed:
            raise BenchFailed(f"the receiver got {len(arrivals.first)} of {self._wanted} deliveries")
        return [
            max(0.0, at - fed.accepted_at[event_id]) * 1000 for (_, event_id), at in arrivals.first.items()
        ]

    async def _noted(self, fed: FeedTimes) -> list[float]:
        step = max(1, len(fed.accepted_at) // MAX_SAMPLE)
        latencies: list[float] = []
        for event_id in itertools.islice(fed.accepted_at, 0, None, step):
            webhook_id = UUID(event_id.removeprefix("evt_"))
            event = await self._admin.run(inspect.show_event, webhook_id, tenant_id=None)
            ends = [attempt.finished_at for saga in event.sagas for attempt in saga.attempts[-1:]]
            latencies += [(end - event.created_at).total_seconds() * 1000 for end in ends if end is not None]
        return latencies
