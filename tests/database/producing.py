"""Producers that insert events beside a migration, and what waits for one."""

import threading
import time
from collections.abc import Callable
from typing import LiteralString

import psycopg

from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo

INSERT = "INSERT INTO events (event_type, payload) VALUES ('a', '{}')"


class Producer:
    """Inserts events one after the other, or runs another statement, and remembers the longest that it waited."""

    def __init__(
        self, address: DatabaseAddress, statement: LiteralString = INSERT, role: Role = Role.INGEST
    ) -> None:
        self.inserted = 0
        self.longest = 0.0
        self._statement: LiteralString = statement
        self._conninfo = role_conninfo(address, role)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._insert)

    def _insert(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            while not self._stopping.wait(0.01):
                begun = time.monotonic()
                connection.execute(self._statement)
                self.longest = max(self.longest, time.monotonic() - begun)
                self.inserted += 1

    def __enter__(self) -> "Producer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread
