"""One event among others that each worker dies of."""

from tests.api.running_system import new_name
from tests.faults.stubborn import Stubborn

NEIGHBOURS = 20


def post_together(user: Stubborn, kind: str, payload: str) -> tuple[str, list[str]]:
    """The poisoned event, and its neighbours before and behind it in one batch."""
    middle = NEIGHBOURS // 2
    payloads: list[object] = [*range(middle), payload, *range(middle, NEIGHBOURS)]
    items = [
        {"event_type": kind, "payload": content, "idempotency_key": new_name("key")} for content in payloads
    ]
    answers = user.call("POST", "/v1/events/batch", {"items": items})["items"]
    ids = [answer["id"] for answer in answers]
    return ids[middle], ids[:middle] + ids[middle + 1 :]
