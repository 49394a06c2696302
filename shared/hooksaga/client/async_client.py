"""The client for asyncio."""

import asyncio
import os
from collections.abc import Iterable
from typing import Self, TypeVar

import httpx

from hooksaga.client.access import access_to
from hooksaga.client.answers import Answer, NoAnswer, Outcome
from hooksaga.client.events import Attributes, Event, Payload, SentEvent
from hooksaga.client.exchange import Attempt, BatchResult, Steps, batch_steps, send_steps
from hooksaga.client.retries import RetryPolicy

T = TypeVar("T")


class AsyncHooksagaClient:
    """HooksagaClient for asyncio: the same arguments, results and errors. Bound to one event loop."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        self._access = access_to(base_url, api_key, os.environ)
        self._retry = retry or RetryPolicy()
        self._owns_http = http_client is None
        self._http = http_client or httpx.AsyncClient()

    async def send(
        self,
        event_type: str,
        payload: Payload,
        *,
        tenant_id: str | None = None,
        idempotency_key: str | None = None,
        ordering_key: str | None = None,
        attributes: Attributes | None = None,
        traceparent: str | None = None,
    ) -> SentEvent:
        """Send one event; see HooksagaClient.send. If cancelled, the event may have been stored."""
        event = Event(event_type, payload, tenant_id, idempotency_key, ordering_key, attributes)
        return await self._run(send_steps(event, self._retry, traceparent=traceparent))

    async def send_batch(self, events: Iterable[Event], *, traceparent: str | None = None) -> BatchResult:
        """Send any number of events; see HooksagaClient.send_batch."""
        return await self._run(batch_steps(events, self._retry, traceparent=traceparent))

    async def aclose(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        try:
            attempt = next(steps)
            while True:
                attempt = steps.send(await self._outcome(attempt))
        except StopIteration as done:
            return done.value

    async def _outcome(self, attempt: Attempt) -> Outcome:
        await asyncio.sleep(attempt.pause_seconds)
        try:
            response = await self._http.post(
                self._access.url + attempt.request.path,
                content=attempt.request.body,
                headers=self._access.headers(attempt.request.headers),
                timeout=attempt.timeout_seconds,
                follow_redirects=False,
            )
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
        return Answer(response.status_code, response.content, dict(response.headers))
