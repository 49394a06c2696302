"""An event with its deliveries and attempts, as a tree on a terminal."""

import json
from typing import TYPE_CHECKING, Any

from hooksaga.cli.terminal import printable, short_time

if TYPE_CHECKING:
    from rich.tree import Tree

BODY_SHOWN = 60
COLOURS = {"Completed": "green", "Failed": "yellow", "DeadLettered": "red"}


def event_tree(event: dict[str, Any]) -> "Tree":
    """Return an event of the API as a tree."""
    from rich.text import Text
    from rich.tree import Tree

    test = "test event  " if event.get("test_subscription_id") else ""
    title = f"{event['event_type']}  {event['id']}  {test}accepted {short_time(event['created_at'])}"
    tree = Tree(Text(printable(title), "bold"))
    for field in ("attributes", "extracted_attributes"):
        if event.get(field):
            pairs = (
                f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in event[field].items()
            )
            tree.add(Text(printable(f"{field.replace('_', ' ')}: " + "  ".join(pairs))))
    for saga in event["sagas"]:
        branch = tree.add(Text(_saga_line(saga), COLOURS.get(saga["status"], "")))
        for attempt in saga["attempts"]:
            branch.add(Text(attempt_line(attempt), COLOURS.get(attempt["status"], "")))
    if removed := event.get("payload_removed_at"):
        tree.add(
            f"{'erased' if event['is_erased'] else 'payload removed by retention'} at {short_time(removed)}"
        )
    if event.get("pruned_before"):
        tree.add(f"deliveries that ended before {short_time(event['pruned_before'])} may have been pruned")
    elif not event["sagas"]:
        tree.add("no sagas: no subscription matched, or the event is not routed yet")
    return tree


def _saga_line(saga: dict[str, Any]) -> str:
    count = saga["attempt_count"]
    words = [f"subscription {saga['subscription_id']}: {saga['status']}"]
    words.append(f"after {count} attempt{'' if count == 1 else 's'}")
    if saga["status"] == "PendingRetry":
        words.append(f"next {short_time(saga['next_attempt_at'])}")
    if saga["waits_for"] not in (None, "retry", "start"):
        earlier = saga["waits_for_saga_id"]
        words.append(f"waits for: {saga['waits_for']}{f' of saga {earlier}' if earlier else ''}")
    if saga["final_error_code"]:
        words.append(f"last error {saga['final_error_code']}")
    if saga["requeued_from"] is not None:
        words.append(f"requeued from dead letter {saga['requeued_from']}")
    elif saga["resent_from"] is not None:
        words.append(f"resent from saga {saga['resent_from']}")
    return printable(f"{', '.join(words)}  (saga {saga['id']})")


def attempt_line(attempt: dict[str, Any]) -> str:
    """Format one attempt as one line, with the beginning of the response if it failed."""
    took = "" if attempt["duration_ms"] is None else f"{attempt['duration_ms']} ms"
    result = attempt["error_code"] or attempt["response_status"] or ""
    body = (attempt["response_body"] or "").strip()
    shown = body if len(body) <= BODY_SHOWN else body[:BODY_SHOWN] + "..."
    parts = [
        f"{attempt['attempt_number']}. {attempt['status']}",
        str(result),
        took,
        "reconnected" if attempt["reconnected"] else "",
        short_time(attempt["finished_at"] or attempt["attempt_at"]),
        shown if attempt["error_code"] else "",
    ]
    return printable("  ".join(part for part in parts if part))
