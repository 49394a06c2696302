"""Rotation of the key that seals secrets: every stored signing secret is resealed under the first key.

Every process must have the new key before, and may drop the old one after. Nothing is locked while secrets are
opened and sealed; a secret that changed meanwhile stays, because it is already sealed under the new key. A row that
another session has locked is skipped, and named in the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

from hooksaga.adapters.database import Connection, Session, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret

BATCH = 500


@dataclass(frozen=True, slots=True)
class Resealed:
    """Result of a batch. checked: number of secrets, or subscriptions with headers, that were read; changed: number
    that were, or would be, resealed. unreadable: the subscriptions whose values no key opens; in_clear: those with
    header values that were not sealed; locked: those that stay as they are because another session has locked the
    row. last_id: None at the end."""

    checked: int
    changed: int
    unreadable: tuple[int, ...]
    last_id: int | None
    in_clear: tuple[int, ...] = ()
    locked: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _SecretRow:
    id: int
    subscription_id: int
    secret: str


@dataclass(frozen=True, slots=True)
class _ReplacedRow:
    """A row whose value is as it was read. written False: another session has locked it."""

    subscription_id: int
    written: bool


class Replacement(NamedTuple):
    """A new value of a row, in place of the one that was read."""

    id: int
    old: str
    new: str


async def reseal_batch(
    connection: Connection, box: SecretBox, *, after_id: int = 0, dry_run: bool = False
) -> Resealed:
    """Reseal the next BATCH secrets after that id, in one statement. A dry run writes nothing."""
    params = {"after_id": after_id, "limit": BATCH}
    rows = await fetch_rows(connection, load_queries("reseal_secrets")["next_secrets"], params, _SecretRow)
    found, unreadable = _reseal(box, rows)
    changed, locked = (len(found), ()) if dry_run else await replace_values(connection, "secrets", found)
    last_id = rows[-1].id if len(rows) == BATCH else None
    return Resealed(len(rows), changed, tuple(unreadable), last_id, locked=locked)


def _reseal(box: SecretBox, rows: list[_SecretRow]) -> tuple[list[Replacement], list[int]]:
    found, unreadable = list[Replacement](), list[int]()
    for row in rows:
        try:
            new = box.reseal(row.secret)
        except UnreadableSecret:
            unreadable.append(row.subscription_id)
            continue
        if new is not None:
            found.append(Replacement(row.id, row.secret, new))
    return found, unreadable


async def replace_values(
    connection: Connection, kind: str, found: Sequence[Replacement]
) -> tuple[int, tuple[int, ...]]:
    """Replace values that are as they were read. kind: secrets or headers. Return how many rows were written, and the
    subscriptions of those that were locked."""
    if not found:
        return 0, ()
    ids, old, new = map(list, zip(*found, strict=True))
    query = load_queries("reseal_secrets")[f"replace_{kind}"]
    rows = await fetch_rows(connection, query, {"ids": ids, "old": old, "new": new}, _ReplacedRow)
    locked = tuple(row.subscription_id for row in rows if not row.written)
    return len(rows) - len(locked), locked


def together(first: Resealed, second: Resealed) -> Resealed:
    """Return both batches as one that ends where the second did."""
    return replace(
        second,
        checked=first.checked + second.checked,
        changed=first.changed + second.changed,
        unreadable=first.unreadable + second.unreadable,
        in_clear=first.in_clear + second.in_clear,
        locked=first.locked + second.locked,
    )


class Batch(Protocol):
    """reseal_batch or reseal_headers_batch, with every argument but the start position bound."""

    async def __call__(self, connection: Connection, *, after_id: int) -> Resealed: ...


async def reseal_all(session: Session, batch: Batch) -> Resealed:
    """Run all batches, each as its own unit of work."""
    done = await session.run(batch, after_id=0)
    while (last_id := done.last_id) is not None:
        following = partial(batch, after_id=last_id)
        done = together(done, await session.run(following))
    return done
