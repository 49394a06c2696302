"""Scopes of an API key."""

from enum import StrEnum


class Scope(StrEnum):
    EVENTS = "events:write"
    SUBSCRIPTIONS = "subscriptions:write"
    VERIFY = "subscriptions:verify"
    ERASE = "events:erase"
    EVENT_TYPES = "event-types:write"
    ADMIN = "admin"


DEFAULT_SCOPES = (Scope.EVENTS, Scope.SUBSCRIPTIONS, Scope.ADMIN)
"""Of a new key, unless others are named."""
