"""hooksaga on one machine: embedded PostgreSQL, the HTTP API on 127.0.0.1, and every stage as a polling loop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session, fetch_rows
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.libpq import complete
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.api.app import ALL_ROUTES
from hooksaga.api.asgi import build_app
from hooksaga.api.services import Services, build_services
from hooksaga.console.routes import ROUTES as CONSOLE_ROUTES
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.secrets_keys import split_keys
from hooksaga.core.trace import Traced
from hooksaga.local.clear_headers import seal_at_start
from hooksaga.local.database_watch import DatabaseWatch
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.private_folder import make_private
from hooksaga.operations.api_keys import create_api_key, generate_api_key, hash_api_key
from hooksaga.operations.console_sign_ins import create_sign_in
from hooksaga.operations.reseal_secrets import reseal_batch
from hooksaga.runtime.settings import InvalidSettings, Settings
from hooksaga.runtime.telemetry import logger, measure_with, note_migration_waits
from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.descriptors import check_descriptors, descriptors_for
from hooksaga.worker.http_server import HOST, http_server, listen
from hooksaga.worker.metrics_page import MetricsPage
from hooksaga.worker.polling import PollingWorker

LOCAL_KEY_NAME = "local"


@dataclass(frozen=True, slots=True)
class LocalWakes:
    """Wakes the loops of this process directly; the orchestrator's loop cancels."""

    worker: PollingWorker

    async def events_accepted(self, events: Sequence[Traced]) -> None:
        self.worker.events_accepted()

    async def subscriptions_due(self, traces: Mapping[int, str | None]) -> None:
        self.worker.sagas_started()

    async def cancel_saga(self, saga: Traced) -> None:
        await self.worker.cancel_saga(saga.id)


def database_address(settings: Settings) -> tuple[DatabaseAddress, EmbeddedPostgres | None]:
    """Return the configured database, or start the embedded one. Blocks.

    Prepared statements are used only with the embedded one: another may be behind a pooler.
    """
    if settings.database_url is not None:
        return DatabaseAddress(
            settings.database_url.get_secret_value(), bool(settings.prepared_statements)
        ), None
    embedded = EmbeddedPostgres(settings.data_dir)
    return DatabaseAddress(complete(embedded.start()), settings.prepared_statements is not False), embedded


def secret_box(settings: Settings) -> SecretBox:
    """Return a box with the configured keys, or with those in the data folder, where one is generated at first use.

    The file may contain several keys, separated by commas, like HOOKSAGA_SECRETS_KEY.
    """
    if settings.secrets_keys:
        return SecretBox(settings.secrets_keys)
    return SecretBox(split_keys(read_or_create(settings.data_dir / "secrets.key", generate_key)))


def has_secrets_key(settings: Settings) -> bool:
    """Return whether there is a key, so that secret_box would not generate one."""
    return bool(settings.secrets_keys) or (settings.data_dir / "secrets.key").exists()


def read_or_create(path: Path, make: Callable[[], str]) -> str:
    """Return the text of a file that only its owner can read; the first of several processes creates it."""
    make_private(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(make())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="ascii").strip()


class LocalSystem:
    """All components of one process. Call `start`, then `run` until it is cancelled or `stop` is called."""

    def __init__(self, settings: Settings, *, port: int) -> None:
        self._settings = settings
        self._port = port
        self.api_key = ""
        self.api_key_is_new = False
        self._embedded: EmbeddedPostgres | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start the database, migrate the schema, start the API, and return its URL.

        Raises OSError if the port is in use, InvalidSettings if the key in the data folder decrypts none of the stored
        signing secrets, or if this process may open too few files for its settings. If a step fails, the earlier ones
        are undone.
        """
        check_descriptors(self._settings.concurrency)
        listening = listen(self._port)
        try:
            await self._start_database()
            await self._start_on_database(listening)
        except BaseException:
            listening.close()
            await self._stop_database()
            raise
        return f"http://{HOST}:{listening.getsockname()[1]}"

    async def _start_database(self) -> None:
        self.address, self._embedded = await asyncio.to_thread(database_address, self._settings)
        if self._embedded is not None:
            self._watching = asyncio.create_task(DatabaseWatch(self._embedded).run())

    async def _start_on_database(self, listening: socket.socket) -> None:
        await asyncio.to_thread(migrate, self.address, tell=note_migration_waits)
        box = secret_box(self._settings)
        await self._refuse_key_of_its_own(box)
        await seal_at_start(self.address, box)
        await self._ensure_api_key()
        ca_file = self._settings.ca_file
        self.sender = HttpSender(
            self._settings.address_policy,
            connect_timeout_seconds=self._settings.http_connect_timeout_seconds,
            ca_file=str(ca_file) if ca_file else None,
        )
        self.worker = PollingWorker(self._settings, self.address, self.sender, box)
        self.services: Services = build_services(
            self._settings,
            self.address,
            self.sender,
            box,
            LocalWakes(self.worker),
            compile_schema=compile_schema,
        )
        self._metrics = MetricsPage(self.address)
        measure_with(self._metrics.counted)
        self.connections = ConnectionTable(reserved=descriptors_for(self._settings.concurrency))
        app = build_app(self.services, [*ALL_ROUTES, *CONSOLE_ROUTES, self._metrics.route])
        self._server = http_server(app, self.connections)
        self._serving = asyncio.create_task(self._server.serve([listening]))
        self._working = asyncio.create_task(self.worker.run())

    async def _refuse_key_of_its_own(self, box: SecretBox) -> None:
        """Raise InvalidSettings if a generated key decrypts none of the secrets: this process would take deliveries
        from processes that can sign them, and fail them.

        A configured key is accepted: otherwise secrets whose key is lost could not be replaced.
        """
        if self._settings.secrets_keys:
            return
        session = Session(self.address, Role.SUBSCRIPTIONS)
        try:
            looked = await session.run(lambda connection: reseal_batch(connection, box, dry_run=True))
        finally:
            await session.close()
        if looked.checked and len(looked.unreadable) == looked.checked:
            raise InvalidSettings(
                "HOOKSAGA_SECRETS_KEY: give this process the key of the others on this database; the one in "
                f"{self._settings.data_dir / 'secrets.key'} opens none of its signing secrets. If theirs is lost, set "
                "a new one (`hooksaga secrets new-key`) and give each receiver a new secret (`rotate-secret`)"
            )

    async def wait(self) -> None:
        """Wait until the API or the loops end, which they do only when stopped or after an internal error.

        Raises EmbeddedPostgresError if the embedded database cannot be restarted: call `abandon` then.
        """
        await self._until_one_ends(self._serving, self._working)

    async def _until_one_ends(self, *parts: "asyncio.Task[Any]") -> None:
        """Wait until a part ends, or the database cannot be restarted."""
        watching = {self._watching} if self._watching is not None else set[asyncio.Task[Any]]()
        done, _ = await asyncio.wait({*parts, *watching}, return_when=asyncio.FIRST_COMPLETED)
        for watch in done & watching:
            watch.result()

    async def abandon(self) -> None:
        """End at once, without the database: results of active attempts can no longer be written."""
        self._server.should_exit = self._server.force_exit = True
        self._working.cancel()
        await asyncio.wait({self._serving, self._working})

    async def stop(self) -> None:
        """Stop intake, wait for active attempts, and stop the embedded database unless others use it.

        An error with which a part has ended is logged.
        """
        self._server.should_exit = True
        await asyncio.wait({self._serving})
        self.worker.stop()
        await asyncio.wait({self._working})
        for name, part in (("api", self._serving), ("loops", self._working)):
            if not part.cancelled() and (fault := part.exception()):
                logger.error("part ended by a fault", extra={"part": name}, exc_info=fault)
        await self.services.close()
        await self._metrics.close()
        await self.sender.close()
        await self._stop_database()

    async def _stop_database(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)  # `wait` has raised its error
        if self._embedded and not await is_in_use(self.address):
            await asyncio.to_thread(self._embedded.stop)

    async def console_link(self, url: str) -> str:
        """Return a link that signs the first browser in to the console. url: where this process listens, instead of
        HOOKSAGA_PUBLIC_URL."""
        session = Session(self.address, Role.ADMIN)
        try:
            token = await session.run(
                lambda connection: create_sign_in(connection, hash_api_key(self.api_key))
            )
        finally:
            await session.close()
        return f"{self._settings.public_url or url}/console/sign-in?token={token}"

    async def _ensure_api_key(self) -> None:
        given = self._settings.api_key
        path = self._settings.data_dir / "api_key"
        self.api_key_is_new = given is None and not path.exists()
        self.api_key = given.get_secret_value() if given else read_or_create(path, generate_api_key)
        session = Session(self.address, Role.ADMIN)
        try:
            await session.run(
                lambda connection: create_api_key(connection, self.api_key, name=LOCAL_KEY_NAME)
            )
        finally:
            await session.close()


@dataclass(frozen=True, slots=True)
class _Others:
    connections: int


async def is_in_use(address: DatabaseAddress) -> bool:
    """Return whether another hooksaga process uses this database.

    A closed connection is counted for a moment, so an early yes is checked again.
    """
    session = Session(address, Role.OWNER)
    try:
        for pause in (0.05, 0.1, 0.2, 0.4, 0.8):
            if not await session.run(_others_are_connected):
                return False
            await asyncio.sleep(pause)
        return True
    except DatabaseUnavailable:
        return False
    finally:
        await session.close()


async def _others_are_connected(connection: Connection) -> bool:
    rows = await fetch_rows(connection, load_queries("local")["count_other_connections"], {}, _Others)
    return rows[0].connections > 0
