"""Conversion of API responses to results. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from hooksaga.client.errors import EventRefused, UnexpectedAnswer
from hooksaga.client.events import SentEvent

NOT_THE_API = "the response is not from a hooksaga API; check base_url (HOOKSAGA_API_URL)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP response. Header names are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The connection failed or timed out. The outcome of the request is unknown."""

    reason: str


Outcome = Answer | NoAnswer


def read_event(answer: Answer, key: str) -> SentEvent:
    """Return the event of a response. Raises EventRefused or UnexpectedAnswer."""
    return _event(_content(answer), key, answer.status)


def read_batch(answer: Answer, keys: Sequence[str]) -> list[SentEvent | EventRefused]:
    """Return one result per key, in order. Raises EventRefused for the whole batch, or UnexpectedAnswer."""
    items: Any = _content(answer).get("items")
    if not isinstance(items, list) or len(cast("list[Any]", items)) != len(keys):
        raise UnexpectedAnswer(answer.status, NOT_THE_API)
    return [_item(item, key, answer.status) for item, key in zip(cast("list[Any]", items), keys, strict=True)]


def _content(answer: Answer) -> dict[str, Any]:
    content = _object(answer.body)
    if 400 <= answer.status < 500:
        raise _refusal(answer.status, content)
    if answer.status not in (200, 202) or content is None:
        raise UnexpectedAnswer(answer.status, NOT_THE_API)
    return content


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", content) if isinstance(content, dict) else None


def _refusal(status: int, problem: Mapping[str, Any] | None) -> EventRefused:
    given = problem or {}
    code, detail, place = given.get("code"), given.get("detail"), given.get("field")
    if not isinstance(code, str):
        return EventRefused(status, "", None, NOT_THE_API)
    return EventRefused(status, code, place if isinstance(place, str) else None, str(detail or code))


def _item(item: Any, key: str, status: int) -> SentEvent | EventRefused:
    if not isinstance(item, dict):
        raise UnexpectedAnswer(status, NOT_THE_API)
    content = cast("dict[str, Any]", item)
    error: Any = content.get("error")
    if not isinstance(error, dict):
        return _event(content, key, status)
    problem = cast("dict[str, Any]", error)
    own: Any = problem.get("status")
    return _refusal(own if isinstance(own, int) else status, problem)


def _event(content: Mapping[str, Any], key: str, status: int) -> SentEvent:
    try:
        return SentEvent(
            id=str(content["id"]),
            event_type=str(content["event_type"]),
            created_at=datetime.fromisoformat(content["created_at"]),
            duplicate=bool(content["duplicate"]),
            idempotency_key=key,
            warning=_warning(content.get("warning")),
        )
    except (KeyError, TypeError, ValueError):
        raise UnexpectedAnswer(status, NOT_THE_API) from None


def _warning(given: Any) -> str | None:
    if not isinstance(given, dict):
        return None
    content = cast("dict[str, Any]", given)
    return f"{content.get('field', '')}: {content.get('detail', '')}"
