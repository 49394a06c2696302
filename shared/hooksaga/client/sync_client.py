"""The synchronous client."""

import os
import time
from collections.abc import Iterable
from typing import Self, TypeVar

import httpx

from hooksaga.client.access import access_to
from hooksaga.client.answers import Answer, NoAnswer, Outcome
from hooksaga.client.events import Attributes, Event, Payload, SentEvent
from hooksaga.client.exchange import Attempt, BatchResult, Steps, batch_steps, send_steps
from hooksaga.client.retries import RetryPolicy

T = TypeVar("T")


class HooksagaClient:
    """Client of one API with one key. Reuses its connections until `close`. Thread-safe.

    base_url and api_key default to HOOKSAGA_API_URL and HOOKSAGA_API_KEY. http_client: a client of the caller, for
    example with its own certificate authority or proxy; it is not closed. Raises ValueError for an invalid URL or key.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        self._access = access_to(base_url, api_key, os.environ)
        self._retry = retry or RetryPolicy()
        self._owns_http = http_client is None
        self._http = http_client or httpx.Client()

    def send(
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
        """Send one event. When this returns, the event is stored and will be delivered.

        Without an idempotency_key one is generated, so that all attempts of this call store one event. Pass a key from
        your own data, such as an order number, to make the whole call safe to repeat. Raises EventRefused, Unavailable
        or UnexpectedAnswer.
        """
        event = Event(event_type, payload, tenant_id, idempotency_key, ordering_key, attributes)
        return self._run(send_steps(event, self._retry, traceparent=traceparent))

    def send_batch(self, events: Iterable[Event], *, traceparent: str | None = None) -> BatchResult:
        """Send any number of events, at most 500 and 4 MiB per request; returns one result per event, in order.

        A rejected event is an EventRefused among the items of the result and does not affect the others. Raises
        HooksagaClientError if a request does not succeed as a whole; its `results` and `remaining` describe the
        events.
        """
        return self._run(batch_steps(events, self._retry, traceparent=traceparent))

    def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            attempt = next(steps)
            while True:
                attempt = steps.send(self._outcome(attempt))
        except StopIteration as done:
            return done.value

    def _outcome(self, attempt: Attempt) -> Outcome:
        time.sleep(attempt.pause_seconds)
        try:
            response = self._http.post(
                self._access.url + attempt.request.path,
                content=attempt.request.body,
                headers=self._access.headers(attempt.request.headers),
                timeout=attempt.timeout_seconds,
                follow_redirects=False,
            )
        except httpx.RequestError as error:
            return NoAnswer(str(error) or type(error).__name__)
        return Answer(response.status_code, response.content, dict(response.headers))
