"""Errors that a call raises."""

from hooksaga.client.events import Event, SentEvent


class HooksagaClientError(Exception):
    """The call as a whole did not succeed.

    Of a batch: `results` are the answers to its first events, `remaining` the events behind them, which have no
    answer, each with the idempotency key that it was or would have been sent with. To send those again is safe. Of a
    single event `remaining` holds that one.
    """

    results: "tuple[SentEvent | EventRefused, ...]" = ()
    remaining: tuple[Event, ...] = ()


class EventRefused(HooksagaClientError):
    """The API does not take this; the same call would be refused again.

    status, code, field and detail are those of the problem document (docs/api.md lists the codes); code is empty where
    the answer was none. Raised without a call, with the code that the API would answer, for a payload that is no JSON,
    an idempotency key that no header can carry, and an item that is larger than a batch.
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
    """No attempt was answered in time. The event may have been stored: only a repeat with the same key tells.

    idempotency_key: of the single event; None for a batch, whose `remaining` have their own. retry_after_seconds: how
    long the API asked to wait, if that was longer than the call may last.
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
    """Error for an answer that is not from hooksaga, such as a proxy's page. The outcome of the call is unknown."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail

    def __str__(self) -> str:
        return f"unexpected answer ({self.status}): {self.detail}"
