"""A message of the queue `intake`, and its message attributes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import ExactNumber, attributes_text
from hooksaga.core.trace import read_traceparent

TYPE = "event_type"
TENANT = "tenant_id"
ORDERING_KEY = "ordering_key"
IDEMPOTENCY_KEY = "idempotency_key"
REFUSAL = "hooksaga_refusal"
"""Message attribute in the redrive queue: why the message was refused."""

_TRACE = "traceparent"
_NOT_OF_THE_EVENT = {TYPE, TENANT, ORDERING_KEY, IDEMPOTENCY_KEY, REFUSAL, _TRACE, "tracestate"}
"""Message attributes that do not become attributes of the event."""


class MessageAttribute(NamedTuple):
    """The text of a message attribute of the type String or Number."""

    text: str
    is_number: bool = False


Attributes = Mapping[str, MessageAttribute]


def readable(given: Iterable[tuple[str, str, str | None]]) -> dict[str, MessageAttribute]:
    """Return the attributes that have a text, of names, data types and values. Those of other types are left out:
    Binary, and String.Array, which only SNS has."""
    found: dict[str, MessageAttribute] = {}
    for name, data_type, value in given:
        kind = data_type.partition(".")[0]
        if value is not None and kind in ("String", "Number") and data_type != "String.Array":
            found[name] = MessageAttribute(value, kind == "Number")
    return found


@dataclass(frozen=True, slots=True)
class IntakeMessage:
    """source and id: who delivered it, and its id there. They are the key of an event that has none."""

    body: str
    source: str
    id: str
    attributes: Attributes = field(default_factory=dict[str, MessageAttribute])

    def text_of(self, attribute: str) -> str | None:
        found = self.attributes.get(attribute)
        return None if found is None else found.text

    @property
    def traceparent(self) -> str | None:
        given = self.text_of(_TRACE)
        return None if given is None else read_traceparent([given])

    @property
    def event_attributes(self) -> str:
        """Return the attributes of the event that the message attributes state, as JSON text.

        Raises InvalidInput `invalid_attributes`.
        """
        return attributes_text(
            {
                name: _number(name, given.text) if given.is_number else given.text
                for name, given in self.attributes.items()
                if name not in _NOT_OF_THE_EVENT
            }
        )


def _number(name: str, text: str) -> ExactNumber:
    """Return the number in the form of JSON: SQS allows +1, 007 and .5 too."""
    try:
        msgspec.json.decode(text.encode(), type=float)
    except msgspec.DecodeError:
        rule = f"attributes.{name}: must be a number as JSON writes it, such as 7 or 0.5"
        raise InvalidInput("invalid_attributes", rule, field=f"attributes.{name}", status=422) from None
    return ExactNumber(text.strip())
