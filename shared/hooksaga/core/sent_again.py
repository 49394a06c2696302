"""Why an ended delivery cannot be sent again."""

from hooksaga.core.errors import Conflict


def cannot_send_again(reason: str | None) -> Conflict:
    """Return the error for the reason that the database gives."""
    match reason:
        case "event_erased":
            return Conflict("event_erased", "the event was erased: there is nothing to send")
        case "payload_removed":
            return Conflict(
                "payload_removed",
                "the payload of the event was removed: it is older than the time for which payloads are kept",
            )
        case _:
            return Conflict("subscription_inactive", "the subscription is not active and verified")
