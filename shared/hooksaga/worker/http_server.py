"""Local HTTP server: uvicorn on one port of 127.0.0.1, with limits on its connections."""

import contextlib
import math
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.host_header import OneHost
from hooksaga.worker.http_protocol import IDLE_SECONDS, protocol_of


class HttpServer(uvicorn.Server):
    """A server without signal handlers: its caller handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def http_server(app: ASGIApp, connections: ConnectionTable, *, stop_seconds: int = 20) -> HttpServer:
    """Build a server whose open connections are in the table. At shutdown, requests may take stop_seconds more."""
    config = uvicorn.Config(
        OneHost(app),
        log_config=None,
        log_level="error",  # a warning per malformed request would let clients fill the log
        access_log=False,
        lifespan="off",
        http=protocol_of(connections),
        ws="none",
        server_header=False,
        timeout_keep_alive=math.ceil(IDLE_SECONDS),
        timeout_graceful_shutdown=stop_seconds,
    )
    return HttpServer(config)
