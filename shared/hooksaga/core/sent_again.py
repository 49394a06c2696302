"""Why an ended delivery cannot be sent again."""

from hooksaga.core.errors import Conflict

_DETAILS = {
    "subscription_inactive": "the subscription is not active and verified",
    "payload_removed": "the payload of the event was removed: it is older than the time for which payloads are kept",
    "event_erased": "the event was erased: there is nothing to send",
}


def cannot_send_again(reason: str | None) -> Conflict:
    """Return the error for the reason that the database gives."""
    code = reason if reason in _DETAILS else "subscription_inactive"
    return Conflict(code, _DETAILS[code])
