"""Checks what must always hold (spec §12), one promise per query of sql/queries/audit.sql."""

from dataclasses import dataclass
from typing import Any

from shared.adapters.database import Connection, fetch_dicts
from shared.adapters.queries import load_queries

MAX_ROWS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, by the name of its query, and the first rows that break it: none when it holds."""

    promise: str
    rows: list[dict[str, Any]]


async def audit(connection: Connection) -> list[Finding]:
    """Every promise in turn. Reads whole tables, so it is a command for operators, not part of the pipeline."""
    return [
        Finding(name, await fetch_dicts(connection, query, {"limit": MAX_ROWS}))
        for name, query in load_queries("audit").items()
    ]
