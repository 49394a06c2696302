"""SQS mode on one machine: embedded PostgreSQL, an SQS API, each function in its own processes, and an HTTP front end.

It has the same interface as LocalSystem.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from hooksaga.adapters.migrations import migrate
from hooksaga.aws.deployment import local_environment
from hooksaga.aws.deployment_order import API_FUNCTIONS
from hooksaga.aws.function_files import routes_of_function
from hooksaga.local.clear_headers import seal_at_start
from hooksaga.local.private_folder import make_private
from hooksaga.local.process_environment import environment_of
from hooksaga.local.sqs.event_source import QueueMapping, QueueSource, Schedule
from hooksaga.local.sqs.front import Front
from hooksaga.local.sqs.function_table import function_kinds, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.ministack import Ministack, given_endpoint
from hooksaga.local.sqs.queue_set import INTAKE, QueueSet, create_queues
from hooksaga.local.sqs.sqs_api import SqsApi
from hooksaga.local.system import LocalSystem, secret_box, secrets_keys
from hooksaga.runtime.settings import Settings
from hooksaga.runtime.telemetry import note_migration_waits


@dataclass(frozen=True, slots=True)
class SqsOptions:
    """Options for tests. `mappings`: options of QueueMapping by queue name. `endpoint`: an existing SQS API.
    `environment`: more variables for the functions."""

    tick_seconds: float = 60
    endpoint: str | None = None
    queue_prefix: str = "hooksaga"
    max_receive_count: int = 5
    mappings: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    environment: dict[str, str] = field(default_factory=dict[str, str])


class SqsSystem(LocalSystem):
    """Call `start`, later `stop`. Requires awslambdaric, and ministack or a given endpoint."""

    def __init__(self, settings: Settings, *, port: int, options: SqsOptions | None = None) -> None:
        super().__init__(settings, port=port)
        self._options = options or SqsOptions()
        self._env = local_environment(settings.lease_seconds)
        self._kinds = function_kinds(self._env)
        self.functions: dict[str, LambdaFunction] = {}
        self.sources: dict[str, QueueSource] = {}
        self.schedules: dict[str, Schedule] = {}

    async def start(self) -> str:
        """Start all parts and return the URL of the HTTP front end.

        Raises NoSqsEndpoint without an SQS API, OSError if the port is in use. If a step fails, the earlier ones are
        undone.
        """
        self._ended = asyncio.Event()
        async with AsyncExitStack() as started:
            url = await self._start(started)
            self._started = started.pop_all()
        return url

    async def _start(self, started: AsyncExitStack) -> str:
        """Start the parts. They stop in reverse order: first intake, then new batches, then the rest."""
        started.push_async_callback(self._stop_database)
        await self._start_database()
        await asyncio.to_thread(migrate, self.address, tell=note_migration_waits)
        await seal_at_start(self.address, secret_box(self._settings))
        await self._ensure_api_key()
        self.sqs = await started.enter_async_context(SqsApi(await self._endpoint(started)))
        self.queues = await self._create_queues()
        self.intake_queue_url = self.queues.work[INTAKE]
        self._make_functions()
        started.push_async_callback(self._stop_functions)
        await asyncio.gather(*(function.warm_up() for function in self.functions.values()))
        started.push_async_callback(self._stop_sources)
        await self._start_sources()
        front = Front([(self.functions[name], routes_of_function(name)) for name in API_FUNCTIONS])
        url = await front.start(self._port)
        started.push_async_callback(front.stop)
        return url

    async def wait(self) -> None:
        """Wait until `stop` is called. Raises like LocalSystem.wait: no other part ends by itself."""
        ended = asyncio.create_task(self._ended.wait())
        try:
            await self._until_one_ends(ended)
        finally:
            ended.cancel()

    async def abandon(self) -> None:
        """Stop the functions without waiting for their work."""
        await self.stop()

    async def stop(self) -> None:
        """Stop intake, wait for active batches, and stop what was started here."""
        await self._started.aclose()
        self._ended.set()

    async def _stop_functions(self) -> None:
        await asyncio.gather(*(function.stop() for function in self.functions.values()))

    async def _stop_sources(self) -> None:
        await asyncio.gather(*(schedule.stop() for schedule in self.schedules.values()))
        await asyncio.gather(*(source.stop() for source in self.sources.values()))

    async def _endpoint(self, started: AsyncExitStack) -> str:
        endpoint = self._options.endpoint or given_endpoint()
        if endpoint is None:
            ministack = Ministack(self._settings.data_dir / "ministack.log")
            endpoint = await ministack.start()
            started.push_async_callback(ministack.stop)
        return endpoint

    async def _create_queues(self) -> QueueSet:
        visibility = {
            queue: kind.visibility_seconds for kind in self._kinds.values() for queue in kind.queues
        }
        return await create_queues(
            self.sqs,
            self._options.queue_prefix,
            visibility_seconds=visibility,
            max_receive_count=self._options.max_receive_count,
        )

    def _make_functions(self) -> None:
        environment = environment_of(
            self._settings,
            HOOKSAGA_DATABASE_URL=self.address.url,
            HOOKSAGA_SECRETS_KEY=",".join(secrets_keys(self._settings)),
            AWS_ENDPOINT_URL=self.sqs.endpoint,
            **self.queues.settings(),
            **self._options.environment,
        )
        logs = self._settings.data_dir / "functions"
        make_private(logs)
        for name, kind in self._kinds.items():
            if name == "migrate":  # ran in this process
                continue
            self.functions[name] = LambdaFunction(function_spec(name, kind, environment), logs)

    async def _start_sources(self) -> None:
        for name, kind in self._kinds.items():
            for queue in kind.queues:
                batching = self._env.batching(queue.replace("-", "_"))
                options: dict[str, Any] = {
                    "batch_size": batching.size,
                    "window_seconds": batching.window_seconds,
                    **self._options.mappings.get(queue, {}),
                }
                mapping = QueueMapping(self.queues.work[queue], **options)
                source = QueueSource(self.sqs, mapping, self.functions[name])
                await source.start()
                self.sources[queue] = source
            if kind.scheduled:
                self.schedules[name] = Schedule(self.functions[name], self._options.tick_seconds)
                self.schedules[name].start()
