"""Handling of a function's response to a batch of messages, as in AWS Lambda.

Any response that is not clearly a list of messages to return makes the whole batch return. Emulators that are less
strict delete messages that AWS would deliver again.
"""

from collections.abc import Sequence
from typing import Any, cast

from hooksaga.local.sqs.runtime_api import Outcome


def messages_to_keep(outcome: Outcome, message_ids: Sequence[str]) -> set[str]:
    """Return the ids of the messages that stay in the queue.

    None: null, an empty object, `batchItemFailures` that is null or empty. All: an error or a timeout, a response that
    is not an object, and any entry whose `itemIdentifier` is missing, null, empty, or not in the batch.
    """
    everything = set(message_ids)
    if outcome.error is not None:
        return everything
    if outcome.payload is None:
        return set()
    if not isinstance(outcome.payload, dict):
        return everything
    entries: object = cast("dict[str, Any]", outcome.payload).get("batchItemFailures")
    if entries is None:
        return set()
    if not isinstance(entries, list):
        return everything
    named = {_identifier(entry) for entry in cast("list[object]", entries)}
    return {name for name in named if name is not None} if named <= everything else everything


def _identifier(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return None
    name = cast("dict[str, object]", entry).get("itemIdentifier")
    return name if isinstance(name, str) and name else None
