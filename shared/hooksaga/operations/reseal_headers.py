"""Reseal the values of subscriptions' custom headers under the first key, and seal values in clear.

As in reseal_secrets, nothing is locked while values are opened and sealed, headers changed meanwhile stay as they
are, and rows that another session has locked are skipped and named.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hooksaga.adapters.database import Connection, fetch_rows
from hooksaga.adapters.queries import load_queries
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret
from hooksaga.operations.reseal_secrets import BATCH, Replacement, Resealed, replace_values
from hooksaga.stages.own_headers import has_clear_values, reseal_headers


@dataclass(frozen=True, slots=True)
class _HeadersRow:
    id: int
    headers: str


@dataclass(frozen=True, slots=True)
class _Found:
    """Changed values; ids of rows that no key decrypts, and of rows with plain text."""

    changed: list[Replacement]
    unreadable: list[int]
    in_clear: list[int]


async def reseal_headers_batch(
    connection: Connection,
    box: SecretBox,
    *,
    after_id: int = 0,
    dry_run: bool = False,
    only_clear: bool = False,
) -> Resealed:
    """Reseal the next BATCH subscriptions with headers after that id. only_clear: seal values in clear only, and leave
    sealed ones unchanged. A dry run writes nothing."""
    params = {"after_id": after_id, "limit": BATCH, "only_clear": only_clear}
    rows = await fetch_rows(connection, load_queries("reseal_secrets")["next_headers"], params, _HeadersRow)
    found = _reseal(box, rows, only_clear)
    changed, locked = len(found.changed), tuple[int, ...]()
    if not dry_run:
        changed, locked = await replace_values(connection, "headers", found.changed)
    last_id = rows[-1].id if len(rows) == BATCH else None
    return Resealed(
        len(rows), changed, tuple(found.unreadable), last_id, in_clear=tuple(found.in_clear), locked=locked
    )


def _reseal(box: SecretBox, rows: Sequence[_HeadersRow], only_clear: bool) -> _Found:
    found = _Found([], [], [])
    for row in rows:
        stored = json.loads(row.headers)
        try:
            anew = reseal_headers(box, stored, only_clear=only_clear)
            if has_clear_values(stored):
                found.in_clear.append(row.id)
        except (UnreadableSecret, ValueError):
            found.unreadable.append(row.id)
            continue
        if anew is not None:
            found.changed.append(Replacement(row.id, row.headers, json.dumps(anew)))
    return found
