"""The whole of SQS mode before a TLS receiver, with what a test needs to see and to disturb."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hooksaga.adapters.database import Role
from hooksaga.local import receiver as receivers
from hooksaga.local.api_client import ApiClient
from hooksaga.local.receiver import Receiver, RunningReceiver
from hooksaga.local.receiver_journal import Received
from hooksaga.local.sqs.event_source import Batch
from hooksaga.local.sqs.queue_set import WORK_QUEUES
from hooksaga.local.sqs.system import SqsOptions, SqsSystem
from hooksaga.local.tls import ensure_certificates
from hooksaga.operations.audit import audit
from hooksaga.runtime.settings import read_settings
from tests.sqs.conftest import new_name, until

TICK_SECONDS = 1.0
VISIBILITY_SECONDS = 2
"""Set once the mappings are made, which AWS allows as well: the mapping was checked against the longer one."""

ENDED = ("Completed", "DeadLettered")
_numbers = itertools.count(1)


class Weather:
    """Faults of batches between the queues and the functions."""

    def __init__(self) -> None:
        self.change: Callable[[Batch], list[Batch]] = lambda batch: [batch]

    def __call__(self, batch: Batch) -> list[Batch]:
        return self.change(batch)

    def clear(self) -> None:
        self.change = lambda batch: [batch]


class Pipeline:
    """A running system, its receiver, its database."""

    def __init__(
        self, system: SqsSystem, url: str, weather: Weather, running: RunningReceiver, database_url: str
    ) -> None:
        self.system = system
        self.url = url
        self.receiver_url = running.url
        self.weather = weather
        self.receiver: Receiver = running.receiver
        self.receiver_url = running.url
        self._api = ApiClient(url, system.api_key)
        self._database = psycopg.connect(database_url, autocommit=True)

    async def call(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """One request through the HTTP front."""
        return await asyncio.to_thread(self._api.call, method, path, **request)

    async def subscribe(self, event_type: str, path: str, **fields: Any) -> tuple[int, str]:
        """A verified subscription of a path of its own, and that path."""
        path = f"{path}/{next(_numbers)}" if path.count("/") > 1 or path in ("/down", "/ok") else path
        wanted = {"event_type": event_type, "callback_url": self.receiver_url + path, **fields}
        created = await self.call("POST", "/v1/subscriptions", json=wanted)
        self.receiver.add_secret(path, created["secret"])
        await self.call("POST", f"/v1/subscriptions/{created['id']}/verify")
        return created["id"], path

    async def post(self, event_type: str, payload: Any = None) -> str:
        """The id of a new event."""
        event = {"event_type": event_type, "payload": payload}
        return (await self.call("POST", "/v1/events", json=event))["id"]

    def received(self, path: str) -> list[Received]:
        """The deliveries to a path, without the challenge."""
        return [one for one in self.receiver.journal.of(path) if one.webhook_id.startswith("evt_")]

    def requests_per_event(self, path: str) -> Counter[str]:
        return Counter(one.webhook_id for one in self.received(path))

    def rows(self, query: LiteralString, *params: Any) -> list[dict[str, Any]]:
        """The answer to a superuser's query."""
        with self._database.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, params).fetchall()

    def seconds_of_starts(self, subscription_id: int) -> float:
        """From the first to the last start of its completed attempts; on a busy machine the first may arrive late."""
        query = """SELECT extract(epoch FROM max(created_at) - min(created_at))::float AS seconds
                     FROM webhook_delivery_jobs WHERE subscription_id = %s AND status = 'Completed'"""
        return self.rows(query, subscription_id)[0]["seconds"]

    def rewrite(self, statement: LiteralString, *params: Any) -> None:
        """A statement behind the back of all guards."""
        with self._database.transaction():
            self._database.execute("SET LOCAL session_replication_role = replica")
            self._database.execute(statement, params)

    def sagas(self, event_type: str) -> list[dict[str, Any]]:
        query: LiteralString = """
            SELECT s.* FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id
             WHERE e.event_type = %s ORDER BY s.id"""
        return self.rows(query, event_type)

    async def until_ended(self, event_type: str, count: int, seconds: float = 60) -> Counter[str]:
        """The states of the sagas of a type, once there are so many and all have ended."""

        def all_ended() -> list[str]:
            states = [saga["status"] for saga in self.sagas(event_type)]
            return states if len(states) == count and all(state in ENDED for state in states) else []

        return Counter(await until(all_ended, f"{count} sagas of {event_type} have ended", seconds))

    @asynccontextmanager
    async def database_closed_to(self, role: Role) -> AsyncIterator[None]:
        """While it lasts the role's connections are broken, and it gets no new ones."""
        name = sql.Identifier(role.value)
        self._database.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(name))
        self.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", role.value)
        try:
            yield
        finally:
            self._database.execute(sql.SQL("ALTER ROLE {} LOGIN").format(name))

    async def depth(self, queue: str) -> int:
        """How many messages a work queue holds, in flight or not."""
        return await self.system.sqs.depth(self.system.queues.work[queue])

    async def purge(self) -> None:
        for url in self.system.queues.work.values():
            await self.system.sqs.call("PurgeQueue", QueueUrl=url)

    async def until_quiet(self) -> None:
        """No message is left, the redrive queues are empty, and what must always hold does."""

        async def is_empty() -> bool:
            return not any([await self.depth(queue) for queue in WORK_QUEUES])

        await until(is_empty, "the queues are empty")
        redriven = {
            queue: await self.system.sqs.depth(url) for queue, url in self.system.queues.redrive.items()
        }
        assert not any(redriven.values()), redriven
        connection = await psycopg.AsyncConnection.connect(self._database.info.dsn, autocommit=True)
        async with connection:
            assert [finding for finding in await audit(connection) if finding.rows] == []

    def close(self) -> None:
        self._database.close()


@asynccontextmanager
async def running_pipeline(
    folder: Path, database_url: str, endpoint: str, options: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[Pipeline]:
    """Everything started, with short waits; stopped at the end."""
    weather = Weather()
    certificates = ensure_certificates(folder)
    running = await receivers.serve(certificates=certificates)
    chosen: dict[str, Any] = {
        "base_delay_seconds": 0.2,
        "max_retry_limit": 2,
        "retry_jitter": 0,
        "breaker_failures": 1000,
        "redispatch_seconds": 2,
        "egress_allow": "127.0.0.0/8",
        "ca_file": certificates.ca,
        **settings,
    }
    system = SqsSystem(
        read_settings(data_dir=folder, database_url=database_url, **chosen),
        port=0,
        options=SqsOptions(
            tick_seconds=TICK_SECONDS,
            endpoint=endpoint,
            queue_prefix=new_name("hooksaga"),
            max_receive_count=20,
            **{"mappings": {queue: {"disturb": weather} for queue in WORK_QUEUES}, **(options or {})},
        ),
    )
    url = await system.start()
    for queue in system.queues.work.values():
        attributes = {"VisibilityTimeout": str(VISIBILITY_SECONDS)}
        await system.sqs.call("SetQueueAttributes", QueueUrl=queue, Attributes=attributes)
    pipeline = Pipeline(system, url, weather, running, database_url)
    try:
        yield pipeline
    finally:
        pipeline.close()
        await system.stop()
        await running.stop()
