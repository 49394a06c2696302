"""The body that an attempt sent, rebuilt from its event, and the present address of its subscription. Reads only."""

from dataclasses import dataclass, replace
from datetime import datetime

from hooksaga.adapters.database import Connection, fetch_found
from hooksaga.adapters.queries import load_queries
from hooksaga.core.cloud_event_output import PAYLOAD, cloud_event_of, format_body
from hooksaga.core.errors import NotFound
from hooksaga.core.event_ids import event_id_text
from hooksaga.operations.attempt_log import WholeAttempt


@dataclass(frozen=True, slots=True)
class SentRequest:
    """body: None since the payload was removed. callback_url: the present one."""

    callback_url: str
    body: str | None
    payload_removed_at: datetime | None
    is_erased: bool


async def read_sent_request(connection: Connection, attempt: WholeAttempt) -> SentRequest:
    """Return the request of an attempt that show_attempt has returned. Raises NotFound if it was deleted meanwhile."""
    query = load_queries("attempt_log")["request_of_attempt"]
    missing = NotFound("attempt_not_found", f"there is no attempt {attempt.id}")
    sent = await fetch_found(connection, query, {"id": attempt.id}, SentRequest, missing)
    return sent if sent.body is None else replace(sent, body=_body(attempt, sent.body))


def _body(attempt: WholeAttempt, payload: str) -> str:
    if attempt.sent_format is None or attempt.cloud_event is None:
        return format_body(PAYLOAD, None, payload).decode()
    event = cloud_event_of(
        attempt.cloud_event,
        webhook_id=event_id_text(attempt.webhook_id),
        event_type=attempt.event_type,
        created_at=attempt.event_created_at,
    )
    return format_body(attempt.sent_format, event, payload).decode()
