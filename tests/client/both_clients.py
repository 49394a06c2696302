"""The two clients behind one face, so that each test is a test of both."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import httpx

from hooksaga.client import AsyncHooksagaClient, BatchResult, Event, HooksagaClient, SentEvent

SeeStatus = Callable[[int], None]


class Client(Protocol):
    def send(self, event_type: str, payload: Any, **more: Any) -> SentEvent: ...

    def send_batch(self, events: Iterable[Event]) -> BatchResult: ...

    def close(self) -> None: ...


class SyncClient:
    def __init__(self, url: str, key: str, *, see_status: SeeStatus | None = None, **more: Any) -> None:
        """see_status: is told the status of each answer, in a client of httpx that is the caller's own."""
        self._http: httpx.Client | None = None
        if see_status is not None:
            hook = lambda response: see_status(response.status_code)  # noqa: E731 - one line for both clients
            self._http = more["http_client"] = httpx.Client(event_hooks={"response": [hook]})
        self._client = HooksagaClient(url, key, **more)

    def send(self, event_type: str, payload: Any, **more: Any) -> SentEvent:
        return self._client.send(event_type, payload, **more)

    def send_batch(self, events: Iterable[Event]) -> BatchResult:
        return self._client.send_batch(events)

    def close(self) -> None:
        self._client.close()
        if self._http is not None:
            self._http.close()


class BlockingAsyncClient:
    """The async client on an event loop of its own, used by one thread."""

    def __init__(self, url: str, key: str, *, see_status: SeeStatus | None = None, **more: Any) -> None:
        self._is_closed = False
        self._runner = asyncio.Runner()
        self._http: httpx.AsyncClient | None = None
        if see_status is not None:

            async def hook(response: httpx.Response) -> None:
                see_status(response.status_code)

            self._http = more["http_client"] = httpx.AsyncClient(event_hooks={"response": [hook]})
        self._client = AsyncHooksagaClient(url, key, **more)

    def send(self, event_type: str, payload: Any, **more: Any) -> SentEvent:
        return self._runner.run(self._client.send(event_type, payload, **more))

    def send_batch(self, events: Iterable[Event]) -> BatchResult:
        return self._runner.run(self._client.send_batch(events))

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._runner.run(self._client.aclose())
        if self._http is not None:
            self._runner.run(self._http.aclose())
        self._runner.close()
