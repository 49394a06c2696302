"""A proxy on the wire between hooksaga and PostgreSQL that cuts connections where it hurts.

It knows the product's named statements by their text, and COMMIT by its name. Two faults: a message `lost` on its way
to the server, and an `unanswered` one, which the server carries out and whose answer nobody gets. They strike once at a
named message, or a share of all of them.
"""

import asyncio
import random
import re
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from tests.faults.crash_points import write_queries
from tests.streams import LoopThread, closing

SOCKET = ".s.PGSQL.5432"
COMMIT = b"COMMIT\x00"
READY = b"Z\x00\x00\x00\x05"
"""ReadyForQuery, but for the state that ends it: the server has carried out what it was asked."""


class Loss(StrEnum):
    """Fate of the affected message; the connection is cut in either case."""

    LOST = "lost on its way to the database"
    UNANSWERED = "carried out, and its answer lost"


class Wire:
    """Listens in a folder of its own, as a server would. New connections lead to `server_socket`, which may change.

    `struck` counts the faults that struck.
    """

    def __init__(self, folder: Path, server_socket: Path) -> None:
        self._folder = folder
        self.server_socket = server_socket
        self._texts = {_wire_text(text): name for text, name in write_queries().items()}
        self._armed: tuple[str, Loss] | None = None
        self._share: tuple[float, Loss] | None = None
        self._chance = random.Random(20_261_127)
        self.struck = 0
        self._seen: dict[str, None] = {}
        self.is_closed = False
        self._links: set[asyncio.Task[None]] = set()
        self._thread = LoopThread("wire")
        folder.mkdir(parents=True, exist_ok=True)
        self._listener = self._thread.do(self._listen())

    @property
    def url(self) -> str:
        """The database, through this proxy."""
        return f"postgresql://postgres@/hooksaga?host={quote(str(self._folder), safe='/')}&port=5432"

    def seen(self) -> list[str]:
        """The named messages that passed so far, in their order, each once."""
        return list(self._seen)

    def arm(self, name: str, loss: Loss) -> None:
        """The next message of this name is treated so."""
        self._armed = (name, loss)

    def strike_at_random(self, share: float, loss: Loss) -> None:
        """From now on this share of all named messages is treated so, until a share of 0."""
        self._share = (share, loss)

    @property
    def has_struck(self) -> bool:
        return self._armed is None

    def cut_all(self) -> None:
        """Every connection breaks now, whatever it is at."""
        self._thread.call_soon(self._cut_all)

    def close(self) -> None:
        self._thread.do(self._stop())
        self._thread.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(closing(self._serve), self._folder / SOCKET)

    async def _stop(self) -> None:
        self._listener.close()
        await asyncio.sleep(0)  # those that were accepted just now begin
        self._cut_all()
        await asyncio.gather(*self._links, return_exceptions=True)

    def _cut_all(self) -> None:
        for link in self._links:
            link.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        with suppress(OSError, asyncio.CancelledError):
            await self._link(reader, writer)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_closed:
            return
        answers, server = await _connect(self.server_socket)
        muted = asyncio.Event()
        ways = {
            asyncio.create_task(self._upward(reader, server, muted)),
            asyncio.create_task(_downward(answers, writer, muted)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            server.close()

    async def _upward(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, muted: asyncio.Event
    ) -> None:
        """Pass on what the client says; returns when the connection is to be cut."""
        written: str | None = None
        while data := await reader.read(1 << 20):
            name = self._named(data)
            written = name or written
            if COMMIT in data:
                name, written = (f"COMMIT of {written}" if written else None), None
            loss = self._strike(name)
            if loss is Loss.LOST:
                return
            if loss is Loss.UNANSWERED:
                muted.set()
            server.write(data)
            await server.drain()

    def _named(self, data: bytes) -> str | None:
        return next((name for text, name in self._texts.items() if text in data), None)

    def _strike(self, name: str | None) -> Loss | None:
        if name is None:
            return None
        self._seen[name] = None
        loss = None
        if self._armed is not None and self._armed[0] == name:
            loss, self._armed = self._armed[1], None
        elif self._share is not None and self._chance.random() < self._share[0]:
            loss = self._share[1]
        self.struck += loss is not None
        return loss


async def _connect(socket: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As open_unix_connection, which drops its connection if it is cancelled when it has just been made."""
    opening = asyncio.ensure_future(asyncio.open_unix_connection(socket))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        (await opening)[1].close()
        raise


async def _downward(
    answers: asyncio.StreamReader, writer: asyncio.StreamWriter, muted: asyncio.Event
) -> None:
    """Pass on what the server says. Once muted nothing is, and the end of the answer is the end of the connection."""
    while data := await answers.read(1 << 20):
        if not muted.is_set():
            writer.write(data)
            await writer.drain()
        elif data[-6:-1] == READY:
            return


def _wire_text(query: str) -> bytes:
    """The statement as psycopg sends it: named parameters are numbered in the order of their first use."""
    numbers: dict[str, int] = {}
    numbered = re.sub(
        r"%\((\w+)\)s", lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", query
    )
    return numbered.replace("%%", "%").encode() + b"\x00"
