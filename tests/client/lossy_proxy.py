"""A TCP proxy that loses answers: the server has done its work, and the client never hears of it."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self


class LossyProxy:
    """Before the port given. Loses the first `losses` answers; `lost` is called as each is there, before the cut."""

    def __init__(self, port: int, *, losses: int, lost: Callable[[], None] = lambda: None) -> None:
        self._target = port
        self.losses = losses
        self._lost = lost
        self.connections = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # wakes the accept
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            self._threads.append(threading.Thread(target=self._carry, args=[client]))
            self._threads[-1].start()

    def _carry(self, client: socket.socket) -> None:
        with client:
            try:
                upstream = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return  # the server is down: the client's connection is closed
            with upstream:
                there = threading.Thread(target=_pump, args=[client, upstream])
                there.start()
                self._answer(upstream, client)
                for end in (client, upstream):
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                there.join()

    def _answer(self, upstream: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := upstream.recv(65536):
                if self.losses > 0:
                    self.losses -= 1
                    self._lost()
                    return
                client.sendall(data)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
