"""TLS in front of an emulator's function URL, which hooksaga would refuse to call: it has no TLS of its own.

What is behind it is the receiver's own function, as on AWS.
"""

import asyncio
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web

from hooksaga.local.tls import ensure_certificates

HOST = "127.0.0.1"
STOP_SECONDS = 10.0
DROPPED = frozenset({"host", "connection", "content-length", "transfer-encoding"})


class TlsFront:
    """Listens in a thread for as long as the block runs. `folder` has the certificate that deliveries trust."""

    def __init__(self, behind: str, folder: Path, port: int = 0) -> None:
        self._behind = behind
        self._certificates = ensure_certificates(folder)
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-front", daemon=True)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(STOP_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        self._loop.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(trust_env=False)
        self._runner = web.ServerRunner(web.Server(self._forward, access_log=None))
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port, ssl_context=self._certificates.server_context())
        await site.start()
        self.port = int(self._runner.addresses[0][1])

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _forward(self, request: web.BaseRequest) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in DROPPED}
        body = await request.read()
        try:
            async with self._session.request(
                request.method, self._behind + request.path, data=body, headers=headers
            ) as answer:
                return web.Response(
                    status=answer.status, body=await answer.read(), content_type=answer.content_type
                )
        except aiohttp.ClientError as error:
            return web.Response(status=502, text=str(error))
