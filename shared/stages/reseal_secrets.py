"""Rotation of the key that seals signing secrets: every stored secret is sealed anew under the first of the keys.

Every process must know the new key before, and may forget the old one after. Nothing is locked while secrets are
opened and sealed; a secret that changed meanwhile is left as it then is, which is under the new key as well.
"""

from dataclasses import dataclass, replace

from shared.adapters.database import Connection, fetch_rows
from shared.adapters.queries import load_queries
from shared.adapters.secret_box import SecretBox, UnreadableSecret

BATCH = 500


@dataclass(frozen=True, slots=True)
class Resealed:
    """checked: how many secrets were looked at; changed: how many were, or would be, sealed anew. unreadable: the
    subscriptions of those that none of the keys opens. last_id: None when the end was reached."""

    checked: int
    changed: int
    unreadable: tuple[int, ...]
    last_id: int | None


@dataclass(frozen=True, slots=True)
class _SecretRow:
    id: int
    subscription_id: int
    secret: str


@dataclass(frozen=True, slots=True)
class _IdRow:
    id: int


async def reseal_batch(
    connection: Connection, box: SecretBox, *, after_id: int = 0, dry_run: bool = False
) -> Resealed:
    """The next BATCH secrets after that id, in one statement. In a dry run nothing is written."""
    params = {"after_id": after_id, "limit": BATCH}
    rows = await fetch_rows(connection, load_queries("reseal_secrets")["next_secrets"], params, _SecretRow)
    found, unreadable = _sealed_anew(box, rows)
    if found and not dry_run:
        await _replace(connection, found)
    return Resealed(len(rows), len(found), tuple(unreadable), rows[-1].id if len(rows) == BATCH else None)


def _sealed_anew(box: SecretBox, rows: list[_SecretRow]) -> tuple[list[tuple[_SecretRow, str]], list[int]]:
    found, unreadable = list[tuple[_SecretRow, str]](), list[int]()
    for row in rows:
        try:
            new = box.reseal(row.secret)
        except UnreadableSecret:
            unreadable.append(row.subscription_id)
            continue
        if new is not None:
            found.append((row, new))
    return found, unreadable


async def _replace(connection: Connection, found: list[tuple[_SecretRow, str]]) -> None:
    params = {
        "ids": [row.id for row, _ in found],
        "old": [row.secret for row, _ in found],
        "new": [new for _, new in found],
    }
    await fetch_rows(connection, load_queries("reseal_secrets")["replace_secrets"], params, _IdRow)


def together(first: Resealed, second: Resealed) -> Resealed:
    """Both batches as one that ended where the second did."""
    return replace(
        second,
        checked=first.checked + second.checked,
        changed=first.changed + second.changed,
        unreadable=first.unreadable + second.unreadable,
    )
