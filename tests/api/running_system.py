"""hooksaga in a thread with an event loop of its own, so that a test can block while the system works."""

import asyncio
import hashlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from hooksaga.api.services import Services
from hooksaga.core.scopes import Scope
from hooksaga.local.api_server import ApiServer
from hooksaga.local.system import LocalSystem
from hooksaga.runtime.settings import Settings, read_settings
from tests.api.http_client import Api

STORED = (
    "events",
    "subscriptions",
    "subscription_secrets",
    "webhook_delivery_sagas",
    "dead_letters",
    "bulk_operations",
)
_numbers = itertools.count(1)

T = TypeVar("T")


class RunningSystem:
    """Everything of one process, at work until `stop`. Waiting is done by conditions with a deadline."""

    def __init__(self, data_dir: Path, **settings: Any) -> None:
        self.settings: Settings = read_settings(
            data_dir=data_dir,
            **{"egress_allow": "127.0.0.0/8", "retry_jitter": 0, "breaker_failures": 1000, **settings},
        )
        self._ready = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="hooksaga")
        self._thread.start()
        assert self._ready.wait(60), "the system did not start"
        if self._fault is not None:
            raise self._fault
        self.api = Api(self.port, self.key)
        self.database = psycopg.connect(self.database_url, autocommit=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as fault:  # noqa: BLE001 - it is raised where the test can see it
            self._fault = fault
            self._ready.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told_to_stop = asyncio.Event()
        self.system = LocalSystem(self.settings, port=0)
        url = await self.system.start()
        self.port = int(url.rpartition(":")[2])
        self.key = self.system.api_key
        self.database_url = self.system.address.url
        self._ready.set()
        await self._told_to_stop.wait()
        await self.system.stop()

    @property
    def services(self) -> Services:
        """What the routes use."""
        return self.server.services

    @property
    def server(self) -> ApiServer:
        assert isinstance(self.system.api, ApiServer)
        return self.system.api

    def stop(self) -> None:
        """Ends as SIGTERM does. Raises whatever ended the system before its time."""
        self.database.close()
        self._loop.call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the system did not stop"
        if self._fault is not None:
            raise self._fault

    def answer(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the system's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def sign_in_link(self) -> str:
        """Path and query of a new link into the console."""
        return self.answer(self.system.console_link(""))

    def rows(self, query: LiteralString, *params: Any) -> list[dict[str, Any]]:
        """The answer to a superuser's query."""
        with self.database.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, params).fetchall()

    def reconnect(self) -> None:
        """The superuser's connection, after its server was stopped."""
        self.database.close()
        self.database = psycopg.connect(self.database_url, autocommit=True)

    def run(self, statement: LiteralString, *params: Any) -> None:
        """A superuser's statement."""
        self.database.execute(statement, params)

    def counts(self) -> dict[str, int]:
        """How many rows there are of everything that a request can store."""
        query = sql.SQL("SELECT count(*) FROM {}")
        return {
            table: self.database.execute(query.format(sql.Identifier(table))).fetchall()[0][0]
            for table in STORED
        }

    @contextmanager
    def nothing_stored(self) -> Iterator[None]:
        before = self.counts()
        yield
        assert self.counts() == before

    def new_key(self, *scopes: str, tenant_id: str | None = None) -> str:
        """A valid API key; without scopes it has all."""
        key = f"hs_{secrets.token_urlsafe(32)}"
        wanted: Sequence[str] = scopes or tuple(Scope)
        query = "SELECT create_api_key('test', %s, %s, %s, %s::text[])"
        self.run(query, hashlib.sha256(key.encode()).digest(), key[-4:], tenant_id, list(wanted))
        return key

    def revoke(self, key: str) -> None:
        """As another process does. The running one may take the key for REMEMBERED_SECONDS more."""
        query = "SELECT revoke_api_key(id) FROM api_keys WHERE key_sha256 = %s"
        self.run(query, hashlib.sha256(key.encode()).digest())

    def verify_by_hand(self, subscription_id: int) -> None:
        """For tests whose subscriber never answers anything."""
        self.run("UPDATE subscriptions SET verified = true WHERE id = %s", subscription_id)


def new_name(stem: str) -> str:
    """An event type or tenant that no other test uses."""
    return f"{stem}.{next(_numbers)}.{secrets.token_hex(3)}"


def wait_until(condition: Callable[[], T | None], what: str, seconds: float = 45) -> T:
    """The condition's first true answer; asks often, and fails at the deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return answer
