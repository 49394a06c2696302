"""Errors that hooksaga raises, by cause.

HooksagaError
├── InvalidInput          the caller's: a field and the rule that it breaks
├── NotFound              the caller's: no such row, or not the caller's to see
├── Conflict              the caller's: well formed, but refused in the present state
├── QueueUnavailable      ours: a message that nothing else would repair could not be sent, try later
├── DatabaseUnavailable   ours: away, read-only, full or too slow; nothing is known to be written, try later
├── SchemaMismatch        ours: the tables or rights are not those of this version, migrate first
├── MigrationFailed       ours: a migration was refused; those before it stay applied
└── RowRefused            ours: the database does not take this row; its neighbours are not at fault
    └── ValueRefused      the caller's: because of a value that it sent
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class HooksagaError(Exception):
    """Root of all errors that hooksaga raises on purpose."""


class InvalidInput(HooksagaError):
    """`field` names what is wrong (empty for the body as a whole), `code` is stable, the message states the rule."""

    def __init__(self, code: str, message: str, *, field: str = "", status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.status = status


class NotFound(HooksagaError):
    """`code` is stable; the message names the kind of thing, never whether another tenant has it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Conflict(HooksagaError):
    """`code` is stable; the message says what state refuses the request."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DatabaseUnavailable(HooksagaError):
    """The unit of work did not end, or its end is unknown. Every unit is safe to repeat."""


class QueueUnavailable(HooksagaError):
    """A request that only a message can carry was not taken by the queue. Nothing has changed."""


class SchemaMismatch(HooksagaError):
    """The message is the database's: a table, function or right that this version needs is not there."""


class MigrationFailed(HooksagaError):
    """The message is the database's."""


class RowRefused(HooksagaError):
    """The database refused a row: its id exists already, a guard or another's trigger does not let it pass.

    `done` holds what a stage answers of the rows that it did without those that were refused, and `rows` all that
    were. The message names rules, never values.
    """

    done: Sequence[Any] = ()
    rows: Sequence["RefusedRow"] = ()


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """One row that the database refused: its ids, as far as the stage knows them, and the rule that it broke.

    event_id is the text that others see, reason the words of RowRefused.
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
    """A constraint, a guard or a type refused a value. Retrying the same value is no use."""
