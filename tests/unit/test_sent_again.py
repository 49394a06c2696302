"""Why an ended delivery cannot be sent again: the code that programs read, and the cause for people."""

import pytest

from hooksaga.core.sent_again import cannot_send_again


@pytest.mark.parametrize(
    ("reason", "code", "message"),
    [
        ("event_erased", "event_erased", "the event was erased: there is nothing to send"),
        (
            "payload_removed",
            "payload_removed",
            "the payload of the event was removed: it is older than the time for which payloads are kept",
        ),
        ("subscription_inactive", "subscription_inactive", "the subscription is not active and verified"),
        (None, "subscription_inactive", "the subscription is not active and verified"),
    ],
)
def test_the_error_tells_the_reason(reason: str | None, code: str, message: str) -> None:
    error = cannot_send_again(reason)
    assert (error.code, str(error)) == (code, message)
