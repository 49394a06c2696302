"""The HTTP API and the console of one machine: in the process of `hooksaga up`, or in one of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from socket import socket

from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hooksaga.adapters.database import DatabaseAddress
from hooksaga.adapters.http_sender import HttpSender
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.adapters.secret_box import SecretBox
from hooksaga.api.app import ALL_ROUTES
from hooksaga.api.asgi import build_app
from hooksaga.api.services import Services, build_services
from hooksaga.console.routes import ROUTES as CONSOLE_ROUTES
from hooksaga.local.wakes import LocalWakes, Stages
from hooksaga.runtime.settings import Settings
from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.http_server import http_server


class ApiServer:
    """All routes of one machine, in the running event loop. They take requests on a listening socket."""

    def __init__(
        self,
        settings: Settings,
        address: DatabaseAddress,
        sender: HttpSender,
        box: SecretBox,
        stages: Stages,
        listening: socket,
        *,
        metrics: Callable[[], Awaitable[bytes]],
        reserved: int,
    ) -> None:
        """metrics: returns the metrics page. reserved: descriptors that connections leave to others."""
        self._wakes = LocalWakes(settings, address, stages)
        self.services: Services = build_services(
            settings, address, sender, box, self._wakes, compile_schema=compile_schema
        )
        app = build_app(self.services, [*ALL_ROUTES, *CONSOLE_ROUTES, _metrics_route(metrics)])
        self.connections = ConnectionTable(reserved)
        self._server = http_server(app, self.connections)
        self._listening = listening
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Serve, from the call of `serve` to that of `stop` or `abandon`."""
        await self.ready.wait()
        if not self._server.should_exit:
            await self._server.serve([self._listening])

    def serve(self) -> None:
        """Take requests from now on."""
        self.ready.set()

    def stop(self) -> None:
        """Accept no more requests, and let those in flight end."""
        self._server.should_exit = True
        self.ready.set()

    def abandon(self) -> None:
        """End at once."""
        self._server.should_exit = self._server.force_exit = True
        self.ready.set()

    async def close(self) -> None:
        await self.services.close()
        await self._wakes.close()


def _metrics_route(page: Callable[[], Awaitable[bytes]]) -> Route:
    async def show(_request: Request) -> Response:
        return Response(await page(), headers={"content-type": CONTENT_TYPE_LATEST})

    return Route("/metrics", show, methods=["GET"])
