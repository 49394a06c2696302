"""hooksaga on one machine: embedded PostgreSQL, the HTTP API on 127.0.0.1, and every stage as a polling loop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session, fetch_dicts
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.libpq import complete
from hooksaga.adapters.migrations import migrate
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.errors import DatabaseUnavailable
from hooksaga.core.secrets_keys import split_keys
from hooksaga.local.api_process import ApiProcess
from hooksaga.local.clear_headers import seal_at_start
from hooksaga.local.database_watch import DatabaseWatch
from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.private_folder import make_private
from hooksaga.operations.api_keys import create_api_key, generate_api_key, hash_api_key
from hooksaga.operations.console_sign_ins import create_sign_in
from hooksaga.operations.reseal_secrets import reseal_batch
from hooksaga.runtime.settings import InvalidSettings, Settings
from hooksaga.runtime.telemetry import logger, measure_with, note_migration_waits
from hooksaga.worker.descriptors import check_descriptors, descriptors_for
from hooksaga.worker.listening import HOST, listen
from hooksaga.worker.metrics_page import MetricsPage
from hooksaga.worker.polling import PollingWorker

if TYPE_CHECKING:  # not loaded where the API has its own process
    from hooksaga.local.api_server import ApiServer

LOCAL_KEY_NAME = "local"


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


def secrets_keys(settings: Settings) -> Sequence[str]:
    """Return the configured keys, or those in the data folder, where one is generated at first use.

    The file may contain several keys, separated by commas, like HOOKSAGA_SECRETS_KEY.
    """
    return settings.secrets_keys or split_keys(
        read_or_create(settings.data_dir / "secrets.key", generate_key)
    )


def secret_box(settings: Settings) -> SecretBox:
    """Return a box with these keys."""
    return SecretBox(secrets_keys(settings))


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


async def ensure_api_key(settings: Settings, address: DatabaseAddress) -> str:
    """Store the configured key, or the one in the data folder, which is generated at first use. Returns it."""
    given = settings.api_key
    path = settings.data_dir / "api_key"
    key = given.get_secret_value() if given else read_or_create(path, generate_api_key)
    async with Session(address, Role.ADMIN) as session:
        await session.run(create_api_key, key, name=LOCAL_KEY_NAME)
    return key


class LocalSystem:
    """All components of one machine. Call `start`, then `run` until it is cancelled or `stop` is called."""

    def __init__(self, settings: Settings, *, port: int, processes: int = 1) -> None:
        """processes: 2 for a process of the API beside this one."""
        self._settings = settings
        self._port = port
        self.processes = processes
        self.api_key = ""
        self.api_key_is_new = False
        self.intake_queue_url: str | None = None
        """The queue for events of other programs, in SQS mode."""
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
        box = secret_box(self._settings)
        self._metrics = MetricsPage(self.address)
        measure_with(self._metrics.counted)
        ca_file = self._settings.ca_file
        self.sender = HttpSender(
            self._settings.address_policy,
            connect_timeout_seconds=self._settings.http_connect_timeout_seconds,
            ca_file=str(ca_file) if ca_file else None,
        )
        self.worker = PollingWorker(self._settings, self.address, self.sender, box)
        self.api = self._make_api(box, listening)
        self._serving = asyncio.create_task(self.api.run())
        try:
            await asyncio.to_thread(migrate, self.address, tell=note_migration_waits)
            await self._refuse_key_of_its_own(box)
            await seal_at_start(self.address, box)
            await self._ensure_api_key()
            await self._serve()
        except BaseException:
            self.api.abandon()
            await asyncio.wait({self._serving})
            raise
        self._working = asyncio.create_task(self.worker.run())

    def _make_api(self, box: SecretBox, listening: socket.socket) -> "ApiServer | ApiProcess":
        if self.processes > 1:
            keys = ",".join(secrets_keys(self._settings))
            return ApiProcess(self._settings, self.address, keys, self.worker, self._metrics, listening)
        from hooksaga.local.api_server import ApiServer

        return ApiServer(
            self._settings,
            self.address,
            self.sender,
            box,
            self.worker,
            listening,
            metrics=self._metrics.text,
            reserved=descriptors_for(self._settings.concurrency),
        )

    async def _serve(self) -> None:
        """Take requests from now on. Raises what has ended the API instead."""
        self.api.serve()
        ready = asyncio.create_task(self.api.ready.wait())
        await asyncio.wait({ready, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            await self._serving

    async def _refuse_key_of_its_own(self, box: SecretBox) -> None:
        """Raise InvalidSettings if a generated key decrypts none of the secrets: this process would take deliveries
        from processes that can sign them, and fail them.

        A configured key is accepted: otherwise secrets whose key is lost could not be replaced.
        """
        if self._settings.secrets_keys:
            return
        async with Session(self.address, Role.SUBSCRIPTIONS) as session:
            looked = await session.run(reseal_batch, box, dry_run=True)
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
        self.api.abandon()
        self._working.cancel()
        await asyncio.wait({self._serving, self._working})

    async def stop(self) -> None:
        """Stop intake, wait for active attempts, and stop the embedded database unless others use it.

        An error with which a part has ended is logged.
        """
        self.api.stop()
        await asyncio.wait({self._serving})
        self.worker.stop()
        await asyncio.wait({self._working})
        for name, part in (("api", self._serving), ("loops", self._working)):
            if not part.cancelled() and (fault := part.exception()):
                logger.error("part ended by a fault", extra={"part": name}, exc_info=fault)
        await self.api.close()
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
        async with Session(self.address, Role.ADMIN) as session:
            token = await session.run(create_sign_in, hash_api_key(self.api_key))
        return f"{self._settings.public_url or url}/console/sign-in?token={token}"

    async def _ensure_api_key(self) -> None:
        path = self._settings.data_dir / "api_key"
        self.api_key_is_new = self._settings.api_key is None and not path.exists()
        self.api_key = await ensure_api_key(self._settings, self.address)


async def is_in_use(address: DatabaseAddress) -> bool:
    """Return whether another hooksaga process uses this database.

    A closed connection is counted for a moment, so an early yes is checked again.
    """
    try:
        async with Session(address, Role.OWNER) as session:
            for pause in (0.05, 0.1, 0.2, 0.4, 0.8):
                if not await session.run(_others_are_connected):
                    return False
                await asyncio.sleep(pause)
            return True
    except DatabaseUnavailable:
        return False


async def _others_are_connected(connection: Connection) -> bool:
    (row,) = await fetch_dicts(connection, load_queries("local")["count_other_connections"], {})
    return row["connections"] > 0
