"""The process of the API, which api_start.py begins. It ends with its parent: at the end of the channel at once."""

import asyncio
import os
import socket

import msgspec

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.local.api_server import ApiServer
from hooksaga.local.channel import COUNTS, EVENTS, PAGE, READY, SAGAS, SERVE, STOP, Channel
from hooksaga.local.forwarded_counts import ForwardedCounts
from hooksaga.runtime.settings import Settings, read_settings
from hooksaga.runtime.telemetry import measure_with
from hooksaga.worker import event_loop
from hooksaga.worker.descriptors import BESIDE_POSTS
from hooksaga.worker.event_loop import forget_what_stays

ORPHANED = 3
"""Exit code after the parent has ended."""


class ApiChild:
    """The API in this process, with its channel to the stages."""

    def __init__(self, settings: Settings, listening: socket.socket) -> None:
        assert settings.database_url is not None, "the parent gives its address"
        self._pages: list[asyncio.Future[bytes]] = []
        self._channel = Channel(self._on_message, lambda: os._exit(ORPHANED))
        self._counts = ForwardedCounts(lambda body: self._channel.send(COUNTS, body))
        self._sender = HttpSender(
            settings.address_policy,
            connect_timeout_seconds=settings.http_connect_timeout_seconds,
            ca_file=str(settings.ca_file) if settings.ca_file else None,
        )
        self._server = ApiServer(
            settings,
            DatabaseAddress(settings.database_url.get_secret_value(), bool(settings.prepared_statements)),
            self._sender,
            SecretBox(settings.secrets_keys),
            self,
            listening,
            metrics=self._page,
            reserved=BESIDE_POSTS,
        )

    async def run(self, channel: socket.socket) -> None:
        """Serve when the parent says so, until it says otherwise."""
        measure_with(self._counts)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._channel, sock=channel)
        forget_what_stays()
        await self._server.run()
        await self._server.close()
        await self._sender.close()
        self._counts.flush()

    def events_accepted(self) -> None:
        self._channel.send(EVENTS)

    def sagas_started(self) -> None:
        self._channel.send(SAGAS)

    async def _page(self) -> bytes:
        """Ask for the page, with everything that was counted here until now."""
        self._counts.flush()
        self._pages.append(asyncio.get_running_loop().create_future())
        self._channel.send(PAGE)
        return await self._pages[-1]

    def _on_message(self, word: bytes, body: bytes) -> None:
        if word == SERVE:
            self._server.serve()
            self._channel.send(READY)
        elif word == STOP:
            self._server.stop()
        elif word == PAGE:
            page, waiting, self._pages = msgspec.json.decode(body, type=str).encode(), self._pages, []
            for one in waiting:
                if not one.done():
                    one.set_result(page)


def serve(channel: int, listening: int) -> None:
    """Serve until the parent says otherwise, with these two descriptors."""
    family = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    event_loop.run(_run(socket.socket(fileno=channel), socket.socket(*family, fileno=listening)))


async def _run(channel: socket.socket, listening: socket.socket) -> None:
    await ApiChild(read_settings(), listening).run(channel)
