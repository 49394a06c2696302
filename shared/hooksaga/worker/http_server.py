"""Local HTTP server: uvicorn on one port of 127.0.0.1, with limits on its connections."""

import contextlib
import math
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from hooksaga.worker.connection_table import ConnectionTable
from hooksaga.worker.host_header import OneHost
from hooksaga.worker.http_protocol import IDLE_SECONDS, protocol_of

HOST = "127.0.0.1"


class HttpServer(uvicorn.Server):
    """A server without signal handlers: its caller handles signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(port: int) -> socket.socket:
    """Return a listening socket. Raises OSError when the port is in use.

    The protocol is set explicitly because asyncio disables Nagle's algorithm only for sockets that say TCP. With Nagle,
    a response in two pieces waits 40 ms for the client's acknowledgement of the first.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(2048)
    except BaseException:
        listening.close()
        raise
    return listening


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
