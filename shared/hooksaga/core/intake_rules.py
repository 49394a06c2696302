"""Rules of the intake: how an event gets its type, tenant, ordering key and attributes from the message's JSON.

A template is text with JSON Pointers in braces, such as `{/source}/{/detail-type}`. Each pointer is replaced by the
value that the message has there. Pure; the settings are compiled once, at the start of a process.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import attributes_text, is_attribute_name, is_value, read_exact
from hooksaga.core.event_catalogue import POINTER_RULE, is_pointer, value_at
from hooksaga.core.event_input import (
    EVENT_TYPE_RULE,
    RESERVED_PREFIX,
    EventDraft,
    check_event_type,
    check_ordering_key,
    is_event_type,
)

DEFAULT_EVENT_TYPE = "{/detail-type}"

_PLACE = re.compile(r"\{([^{}]*)\}")
_NOT_OF_A_TYPE = re.compile(r"[^A-Za-z0-9_.:/-]+")


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and, between them, JSON Pointers: `texts` has one more entry than `pointers`."""

    texts: tuple[str, ...]
    pointers: tuple[str, ...]

    def text_of(self, document: object) -> str | None:
        """Return the text for a message; None if a pointer finds no string, number or boolean in it."""
        values = [_text(value_at(document, pointer)) for pointer in self.pointers]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None
        return self.texts[0] + "".join(map("".join, zip(found, self.texts[1:], strict=True)))

    def finds_nothing(self, document: object) -> bool:
        """Return whether the message has no value at any pointer."""
        return all(value_at(document, pointer) is None for pointer in self.pointers)

    @property
    def places(self) -> str:
        return ", ".join(self.pointers)


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else None


def read_template(text: str) -> Template:
    """Compile a template. Raises ValueError with the rule."""
    parts = _PLACE.split(text)
    texts, pointers = parts[::2], parts[1::2]
    if any("{" in part or "}" in part for part in texts):
        raise ValueError("every brace must belong to a pair around a JSON Pointer, such as {/detail/tenant}")
    for pointer in pointers:
        if not pointer or not is_pointer(pointer):
            raise ValueError(f"{{{pointer[:100]}}} must hold {POINTER_RULE}")
    return Template(tuple(texts), tuple(pointers))


def read_tenant_template(text: str) -> Template:
    """Compile the template of a tenant, whose literal text must have the characters of a tenant."""
    template = read_template(text)
    literal = "".join(template.texts)
    if not (is_event_type(literal) if literal else template.pointers):
        raise ValueError(f"the text around JSON Pointers must have {EVENT_TYPE_RULE}")
    return template


def read_type_template(text: str) -> Template:
    """Compile the template of an event type, as that of a tenant."""
    if text.startswith(RESERVED_PREFIX):
        raise ValueError(f"must not begin with {RESERVED_PREFIX}, which is reserved for operational events")
    return read_tenant_template(text)


def read_key_template(text: str) -> Template:
    """Compile the template of an ordering key, which differs between events."""
    template = read_template(text)
    if not template.pointers:
        raise ValueError("must have a JSON Pointer in braces, such as {/detail/order_id}")
    return template


def read_attribute_pointers(text: str) -> dict[str, str]:
    """Return the JSON Pointers of attributes by name, of text such as `country=/detail/country, account=/account`.

    Raises ValueError with the rule.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, pointer = (piece.strip() for piece in part.partition("="))
        if not (equals and pointer and is_pointer(pointer)):
            raise ValueError(f"must be NAME=POINTER, separated by commas; each pointer is {POINTER_RULE}")
        if not is_attribute_name(name) or name in found:
            raise ValueError(f"{name[:100]!r} must be the name of an attribute, once")
        found[name] = pointer
    return found


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """The settings of the intake."""

    event_type: Template
    tenant: Template | None = None
    ordering_key: Template | None = None
    attributes: Mapping[str, str] | None = None

    @property
    def reads_messages(self) -> bool:
        """Return whether a setting other than that of the event type needs the message's JSON."""
        finds_tenant = self.tenant is not None and bool(self.tenant.pointers)
        return finds_tenant or self.ordering_key is not None or bool(self.attributes)

    def type_of(self, document: object) -> str | None:
        """Return the event type of a message that names none itself; None if it has no value for it.

        Characters that an event type cannot have become `_`. Raises InvalidInput for a type that is not valid then.
        """
        found = self.event_type.text_of(document)
        return None if found is None else check_event_type(_NOT_OF_A_TYPE.sub("_", found))

    def tenant_for(self, document: object, *, names_own: bool) -> str | None:
        """Return the only tenant that the message may write for; None for any. names_own: the message names one.

        A fixed tenant binds all messages. Otherwise the message's own counts, then the one that the setting finds.
        Raises InvalidInput if a message has none: it must not reach another tenant's subscribers.
        """
        if self.tenant is None or (names_own and self.tenant.pointers):
            return None
        found = self.tenant.text_of(document)
        if found is None or not is_event_type(found):
            raise InvalidInput(
                "invalid_tenant_id",
                f"the message must name its tenant at {self.tenant.places}, with {EVENT_TYPE_RULE}",
                field=self.tenant.places,
                status=422,
            )
        return found

    def applied_to(self, draft: EventDraft, document: object) -> EventDraft:
        """Return the event with the ordering key and the attributes that it does not name itself."""
        key = draft.ordering_key
        if key is None and self.ordering_key is not None:
            key = _key_at(self.ordering_key, document)
        attributes = draft.attributes
        if self.attributes is not None:
            found = {name: value_at(document, pointer) for name, pointer in self.attributes.items()}
            kept = {name: value for name, value in found.items() if is_value(value)}
            attributes = attributes_text({**kept, **read_exact(attributes)})
        return replace(draft, ordering_key=key, attributes=attributes)


def _key_at(template: Template, document: object) -> str | None:
    """Return the ordering key; None if the message has no value for it."""
    if template.finds_nothing(document):
        return None
    found = template.text_of(document)
    if found is None:
        rule = f"the message must have a string, number or boolean at {template.places}"
        raise InvalidInput("invalid_ordering_key", rule, field=template.places, status=422)
    return check_ordering_key(found)
