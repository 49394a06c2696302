"""The local receiver, in a thread of its own, remembering every request to the byte."""

import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web
from standardwebhooks.webhooks import Webhook

from hooksaga.local.receiver import Receiver, RunningReceiver, serve
from hooksaga.local.tls import Certificates
from tests.api.running_system import wait_until
from tests.streams import LoopThread

T = TypeVar("T")
Script = Callable[[bytes], web.Response | Awaitable[web.Response]]


@dataclass(frozen=True)
class Arrived:
    """One request, noted when its body was there. Header names are in lower case."""

    path: str
    query: str
    headers: list[tuple[str, str]]
    body: bytes
    at: float

    def header(self, name: str) -> str:
        """Its only value."""
        values = [value for known, value in self.headers if known == name]
        assert len(values) == 1, (name, values)
        return values[0]

    @property
    def is_challenge(self) -> bool:
        return b'"subscription.verification"' in self.body

    def verify(self, secret: str) -> None:
        """Raises WebhookVerificationError, by the independent implementation."""
        signed = {
            name: self.header(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        }
        Webhook(secret).verify(self.body, signed, json_parse=False)


class RecordingReceiver(Receiver):
    """Answers as its scripts say; paths without a script fail in the way that they name."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[Arrived] = []
        self.scripts: dict[str, Script] = {}

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        headers = [(name.lower(), value) for name, value in request.headers.items()]
        self.arrived.append(Arrived(request.path, request.query_string, headers, body, time.time()))
        script = self.scripts.get(request.path)
        if script is None:
            return await super().handle(request)
        answer = script(body)
        return answer if isinstance(answer, web.Response) else await answer


class Recorder:
    """The receiver's thread. Its port stays the same over `stop` and `start`.

    `enter` is run in the thread before anything else, to move it into another network.
    """

    def __init__(
        self, certificates: Certificates, host: str = "127.0.0.1", enter: Callable[[], None] = lambda: None
    ) -> None:
        self._certificates = certificates
        self._host = host
        self.receiver = RecordingReceiver()
        self._port = 0
        self._thread = LoopThread("receiver", enter)
        self._running: RunningReceiver | None = None
        self.start()

    def start(self) -> None:
        assert self._running is None
        serving = serve(self._host, self._port, certificates=self._certificates, receiver=self.receiver)
        self._running = self._thread.do(serving)
        self.url = self._running.url
        self._port = int(self.url.rpartition(":")[2])

    def stop(self) -> None:
        """Cuts what hangs; from now on connections are refused."""
        if self._running is not None:
            self._thread.do(self._running.stop())
            self._running = None

    def close(self) -> None:
        self.stop()
        self._thread.close()

    def script(self, path: str, answer: Script | web.Response | int) -> None:
        """Set the response of the path: a status, or a function of the body."""
        if isinstance(answer, int):
            self.receiver.scripts[path] = lambda _body, status=answer: web.Response(status=status)
        else:
            assert not isinstance(answer, web.Response), "an answer can be sent once only: give a function"
            self.receiver.scripts[path] = answer

    def events(self, path: str | None = None) -> list[Arrived]:
        """Return the arrived events, oldest first, without challenges."""
        return [
            one for one in list(self.receiver.arrived) if path in (None, one.path) and not one.is_challenge
        ]

    def challenges(self, path: str) -> list[Arrived]:
        return [one for one in list(self.receiver.arrived) if one.path == path and one.is_challenge]

    def wait_for(self, path: str, how_many: int, seconds: float = 45) -> list[Arrived]:
        """The events of a path, once there are so many."""
        return wait_until(
            lambda: found if len(found := self.events(path)) >= how_many else [],
            f"{how_many} events at {path}",
            seconds,
        )


def each(work: Callable[[int], T], how_many: int, threads: int = 8) -> list[T]:
    """work(0), work(1), … from several threads; the answers in order."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(how_many)))
