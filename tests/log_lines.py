"""The structured log of a process, read back."""

import json
from collections import Counter
from typing import Any

CANONICAL = ("event routed", "attempt", "saga moved")

KEYS = {
    "event routed": {"event_id", "correlation_id", "sagas", "routing_delay_ms"},
    "attempt": {
        "event_id",
        "correlation_id",
        "saga_id",
        "job_id",
        "subscription_id",
        "worker_id",
        "lease_expiration",
        "span_id",
        "attempt",
        "claim",
        "status",
        "duration_ms",
    },
    "saga moved": {
        "event_id",
        "correlation_id",
        "saga_id",
        "job_id",
        "subscription_id",
        "previous_status",
        "status",
        "attempt_count",
    },
}
"""What every line of a kind has; there may be more."""


def json_lines(text: str) -> list[dict[str, Any]]:
    """Every line that is an object; a line may be cut by the death of its process."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue
        if isinstance(content, dict):
            found.append(content)
    return found


def canonical_lines(text: str, event_id: str) -> list[dict[str, Any]]:
    """Return the complete lines of one event in order."""
    lines = [
        one for one in json_lines(text) if one.get("message") in CANONICAL and one.get("event_id") == event_id
    ]
    for line in lines:
        assert KEYS[line["message"]] <= set(line), line
    return lines


def kinds(lines: list[dict[str, Any]]) -> Counter[str]:
    """How many there are of each."""
    return Counter(line["message"] for line in lines)


def moves_of(lines: list[dict[str, Any]], saga_id: int) -> list[tuple[str, str]]:
    """The transitions of one saga."""
    moved = [line for line in lines if line["message"] == "saga moved" and line["saga_id"] == saga_id]
    return [(line["previous_status"], line["status"]) for line in moved]
