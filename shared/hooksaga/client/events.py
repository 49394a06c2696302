"""Events that a producer sends, and their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

Payload: TypeAlias = Mapping[str, Any] | Sequence[Any] | str | bytes | int | float | bool | None
"""Any JSON value. A `str` or `bytes` is JSON text and is sent unchanged: a JSON string is `'"text"'`."""

Attributes: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Event:
    """One event to send.

    tenant_id: None for the tenant of the API key, or `default`. idempotency_key: None to generate one for the call.
    ordering_key: ordered subscriptions deliver the events of one key one at a time, in order. attributes: what
    subscriptions can filter by, beside the payload.
    """

    event_type: str
    payload: Payload
    tenant_id: str | None = None
    idempotency_key: str | None = None
    ordering_key: str | None = None
    attributes: Attributes | None = None


@dataclass(frozen=True, slots=True)
class SentEvent:
    """An event that is stored and will be delivered.

    id: `evt_…`, which endpoints get as `webhook-id`. duplicate: the key was already used for the same content, and the
    other fields are those of the first event; also true if an attempt of this call stored it and its response was
    lost. warning: where its payload does not match the schema of its type, and the rule, if that is no error.
    """

    id: str
    event_type: str
    created_at: datetime
    duplicate: bool
    idempotency_key: str
    warning: str | None = None
