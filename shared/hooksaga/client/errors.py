"""Errors that a call raises."""

from hooksaga.client.events import Event, SentEvent


class HooksagaClientError(Exception):
    """The call did not succeed as a whole.

    For a batch, `results` are the results of its first events; `remaining` are the other events, which have no result,
    each with its idempotency key. Sending these again is safe. For a single event `remaining` contains that event.
    """

    results: "tuple[SentEvent | EventRefused, ...]" = ()
    remaining: tuple[Event, ...] = ()


class EventRefused(HooksagaClientError):
    """The API rejects the event; the same call would be rejected again.

    status, code, field and detail are those of the problem document (docs/api.md lists the codes); code is empty if
    the response has none. Also raised without a request, with the code that the API would return, for a payload that
    is not JSON, an idempotency key that a header cannot contain, and an item larger than a batch.
    """

    def __init__(self, status: int, code: str, field: str | None, detail: str) -> None:
        super().__init__(status, code, field, detail)
        self.status = status
        self.code = code
        self.field = field
        self.detail = detail

    def __str__(self) -> str:
        place = f"{self.field}: " if self.field else ""
        return f"{self.code or 'refused'} ({self.status}): {place}{self.detail}"


class Unavailable(HooksagaClientError):
    """No attempt got a response in time. The event may have been stored; repeat the call with the same key.

    idempotency_key: of the single event; None for a batch, whose `remaining` have their own. retry_after_seconds: the
    wait that the API requested, if it was longer than the call may last.
    """

    def __init__(
        self,
        idempotency_key: str | None,
        attempts: int,
        reason: str,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(idempotency_key, attempts, reason, retry_after_seconds)
        self.idempotency_key = idempotency_key
        self.attempts = attempts
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds

    def __str__(self) -> str:
        times = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        key = f"; idempotency key {self.idempotency_key}" if self.idempotency_key else ""
        return f"no answer after {times}: {self.reason}{key}"


class UnexpectedAnswer(HooksagaClientError):
    """The response is not from hooksaga, such as a proxy's page. The outcome of the call is unknown."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"unexpected answer ({self.status}): {self.detail}"
