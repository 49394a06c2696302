"""Lambda's handling of a function's answer to a batch of messages, exactly as on AWS.

Everything that is not clearly a list of messages to give back makes the whole batch come back: emulators that are
laxer here delete messages which AWS would deliver again.
"""

from collections.abc import Sequence
from typing import Any, cast

from hooksaga.local.sqs.runtime_api import Outcome


def messages_to_keep(outcome: Outcome, message_ids: Sequence[str]) -> set[str]:
    """The ids of the messages that are not deleted.

    None of them: null, an empty object, `batchItemFailures` that is null or empty. All of them: an error or a timeout,
    an answer that is no object, and any entry whose `itemIdentifier` is missing, null, empty, or none of the batch.
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
