"""Errors that hooksaga raises, by cause.

HooksagaError
├── InvalidInput          caller: a field breaks a rule
├── NotFound              caller: the row does not exist, or is not visible to the caller
├── Conflict              caller: the request is valid, but conflicts with the current state
├── QueueUnavailable      server: a message that no sweep would replace could not be sent; retry later
├── DatabaseUnavailable   server: unreachable, read-only, full or too slow; the outcome is unknown; retry later
├── SchemaMismatch        server: tables or rights are not those of this version; migrate first
├── MigrationFailed       server: a migration failed; earlier ones stay applied
└── RowRefused            server: the database rejects this row only
    └── ValueRefused      caller: the database rejects a value that the caller sent
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class HooksagaError(Exception):
    """Base class of all errors that hooksaga raises."""


class InvalidInput(HooksagaError):
    """`field` names the invalid field (empty for the whole body), `code` is stable, the message states the rule."""

    def __init__(self, code: str, message: str, *, field: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.status = status


class InvalidPart(ValueError):
    """A part of a field breaks a rule. place: where in it, such as `.order_id[0].numeric`; empty for all of it."""

    def __init__(self, place: str, rule: str) -> None:
        super().__init__(rule)
        self.place = place


class NotFound(HooksagaError):
    """`code` is stable. The message names the kind of object, never whether another tenant has it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Conflict(HooksagaError):
    """`code` is stable. The message names the conflicting state."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DatabaseUnavailable(HooksagaError):
    """The unit of work failed, or its outcome is unknown. Every unit is safe to repeat."""


class QueueUnavailable(HooksagaError):
    """The queue did not accept a request that only a message can carry. Nothing has changed."""


class SchemaMismatch(HooksagaError):
    """A table, function or right that this version needs is missing. The message is the database's."""


class MigrationFailed(HooksagaError):
    """The message is the database's."""


class RowRefused(HooksagaError):
    """The database rejected a row: its id exists, or a guard or another trigger forbids it.

    `done` has the results of the other rows of a stage, and `rows` all rejected rows. The message names rules, never
    values.
    """

    done: Sequence[Any] = ()
    rows: Sequence["RefusedRow"] = ()


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """One row that the database rejected: its ids, as far as known, and the rule that it breaks.

    event_id is the public id; reason is the message of RowRefused.
    """

    reason: str = ""
    saga_id: int | None = None
    job_id: int | None = None
    subscription_id: int | None = None
    dead_letter_id: int | None = None
    bulk_operation_id: int | None = None
    event_id: str | None = None
    correlation_id: str | None = None


class ValueRefused(RowRefused):
    """A constraint, a guard or a type rejects a value. A retry with the same value is useless."""
