"""Where the time of one delivery goes: processor time of each stage, of this process and of PostgreSQL, without HTTP.

    .venv/bin/python -m bench.stages [--deliveries 20000] [--batch 100] [--without guards|foreign-keys]

Each stage runs alone, in batches as polling mode makes them behind a backlog, on an empty database with the settings
of `hooksaga up`: accept and route over all deliveries, the others in rounds, as many at a time as one subscription may
have in progress. Processor time hardly depends on what else the machine does. `--without` switches
the guards of sagas and jobs off, or the checks of their foreign keys, to see what they cost.
"""

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable

from bench.processor import cpu_of_server
from hooksaga.adapters.database import DatabaseAddress, Role, Session
from hooksaga.adapters.http_sender import SendOutcome
from hooksaga.adapters.migrations import migrate
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import RetryPolicy
from hooksaga.local.bench import EVENT_TYPE, make_payload
from hooksaga.local.bench_place import own_folder
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.runtime.settings import read_settings
from hooksaga.runtime.telemetry import logger
from hooksaga.stages import deliver, route_events
from hooksaga.stages.accept_events import accept_events
from hooksaga.stages.apply_results import apply_results
from hooksaga.stages.job_rows import AttemptResult, ClaimedJob
from hooksaga.stages.start_attempts import start_attempts
from hooksaga.stages.start_plan import Places
from hooksaga.stages.telemetry import note_attempts, note_moves, note_routed
from hooksaga.stages.wakes import waiting_subscriptions
from hooksaga.worker import event_loop
from hooksaga.worker.worker_identity import new_worker_id

WORKER = new_worker_id()
PAYLOAD_BYTES = 600
ACCEPTED_AT_ONCE = 500
ANSWER = SendOutcome(200, None, "ok", False, None, "127.0.0.1", 5)
SUBSCRIBE = """
INSERT INTO subscriptions (event_types, callback_url, active, verified)
VALUES (ARRAY[%s], 'https://bench.example/', true, true)"""
FULL_ROOM = "UPDATE subscription_flow SET in_flight_limit = 1000"
KEY = "INSERT INTO subscription_secrets (subscription_id, secret) SELECT id, 'sealed' FROM subscriptions"
OPEN_WORK = ("webhook_delivery_sagas", "webhook_delivery_jobs")
WITHOUT = {"guards": "USER", "foreign-keys": "ALL"}

Stage = Callable[[], Awaitable[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--deliveries", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=100, help="jobs that a statement has")
    parser.add_argument("--without", choices=sorted(WITHOUT), help="what to switch off")
    options = parser.parse_args()
    logger.setLevel("CRITICAL")
    event_loop.run(_measure(options.deliveries, options.batch, options.without))


async def _measure(deliveries: int, batch: int, without: str | None) -> None:
    async with own_folder(read_settings().data_dir) as folder:
        server = EmbeddedPostgres(folder)
        address = DatabaseAddress(await asyncio.to_thread(server.start), prepare=True)
        await asyncio.to_thread(migrate, address)
        chain = Chain(address, deliveries, batch)
        await chain.prepare(without)
        print(f"{'stage':8} {'Python':>10} {'PostgreSQL':>12}   microseconds of a processor per delivery")
        spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

        async def run(name: str, stage: Stage) -> int:
            postgres, python = cpu_of_server(folder), time.process_time()
            done = await stage()
            python = time.process_time() - python
            spent[name][0] += python
            spent[name][1] += cpu_of_server(folder) - postgres
            return done

        await run("accept", chain.accept)
        await run("route", chain.route)
        while await run("start", chain.start):
            await run("claim", chain.claim)
            await run("record", chain.record)
            await run("apply", chain.apply)
        spent["all"] = [sum(column) for column in zip(*spent.values(), strict=True)]
        for name, (python, postgres) in spent.items():
            _show(name, python, postgres, deliveries)
        await chain.close()


def _show(name: str, python: float, postgres: float, deliveries: int) -> None:
    print(f"{name:8} {1e6 * python / deliveries:10.1f} {1e6 * postgres / deliveries:12.1f}", flush=True)


class _Batch(Places):
    def __init__(self, size: int) -> None:
        self._size = size

    def left_for(self, subscription_id: int, *, slow: bool) -> int:
        return self._size


class Chain:
    """The stages of `deliveries` events that go to one subscription, one stage after the other."""

    def __init__(self, address: DatabaseAddress, deliveries: int, batch: int) -> None:
        roles = (Role.OWNER, Role.INGEST, Role.ROUTER, Role.ORCHESTRATOR, Role.DELIVERY)
        self._sessions = {role: Session(address, role) for role in roles}
        self._batch = batch
        self._places = _Batch(batch)
        self._jobs: list[ClaimedJob] = []
        self._drafts = [
            EventDraft(EVENT_TYPE, make_payload(number, PAYLOAD_BYTES)) for number in range(deliveries)
        ]

    async def prepare(self, without: str | None) -> None:
        owner = self._sessions[Role.OWNER]
        await owner.run(lambda connection: connection.execute(SUBSCRIBE, [EVENT_TYPE]))
        for statement in (KEY, FULL_ROOM):
            await owner.run(lambda connection, sql=statement: connection.execute(sql))
        for table in OPEN_WORK if without else ():
            switch_off = f"ALTER TABLE {table} DISABLE TRIGGER {WITHOUT[without or '']}".encode()
            await owner.run(lambda connection, sql=switch_off: connection.execute(sql))
        for session in self._sessions.values():  # connected before it counts
            await session.run(lambda connection: connection.execute("SELECT 1"))

    async def accept(self) -> int:
        for first in range(0, len(self._drafts), ACCEPTED_AT_ONCE):
            batch = self._drafts[first : first + ACCEPTED_AT_ONCE]
            await self._sessions[Role.INGEST].run(accept_events, batch)
        return len(self._drafts)

    async def route(self) -> int:
        routed = 0
        while (done := await self._sessions[Role.ROUTER].run(route_events.route_events)).events:
            note_routed(done)
            routed += len(done.events)
        return routed

    async def start(self) -> int:
        started, policy, session = 0, RetryPolicy(), self._sessions[Role.ORCHESTRATOR]
        ids, _ = await session.run(waiting_subscriptions)
        while ids:
            done = await session.run(start_attempts, policy, subscription_ids=ids, places=self._places)
            note_moves(done.moves)
            started += len(done.moves)
            ids = ids if done.moves else []
        return started

    async def claim(self) -> int:
        session, self._jobs = self._sessions[Role.DELIVERY], []
        while claimed := await session.run(
            deliver.claim_waiting_jobs, slow=False, limit=self._batch, worker_id=WORKER, lease_seconds=900
        ):
            self._jobs += claimed
        return len(self._jobs)

    async def record(self) -> int:
        for first in range(0, len(self._jobs), self._batch):
            results = [AttemptResult(job, ANSWER, "") for job in self._jobs[first : first + self._batch]]
            written = await self._sessions[Role.DELIVERY].run(
                deliver.record_results, results, worker_id=WORKER
            )
            note_attempts(results, written, WORKER)
        return len(self._jobs)

    async def apply(self) -> int:
        applied, policy = 0, RetryPolicy()
        for first in range(0, len(self._jobs), self._batch):
            finished = [job.id for job in self._jobs[first : first + self._batch]]
            moves = await self._sessions[Role.ORCHESTRATOR].run(apply_results, policy, job_ids=finished)
            note_moves(moves)
            applied += len(moves)
        return applied

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


if __name__ == "__main__":
    main()
