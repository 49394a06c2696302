"""Audit: checks the invariants, one per query of sql/queries/audit.sql."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hooksaga.adapters.database import Connection, fetch_dicts
from hooksaga.adapters.queries import load_queries
from hooksaga.core.models import rfc3339

MAX_ROWS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One invariant, by the name of its query, and the first rows that violate it."""

    invariant: str
    rows: list[dict[str, Any]]

    def content(self) -> dict[str, Any]:
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.rows]
        return {"invariant": self.invariant, "ok": not rows, "rows": rows}


def _plain(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value


def invariants() -> list[str]:
    return list(load_queries("audit"))


async def audit(connection: Connection) -> list[Finding]:
    """Check all invariants. Reads whole tables, so it is a command for operators, not part of the pipeline."""
    return [await audit_one(connection, invariant) for invariant in invariants()]


async def audit_one(connection: Connection, invariant: str) -> Finding:
    query = load_queries("audit")[invariant]
    return Finding(invariant, await fetch_dicts(connection, query, {"limit": MAX_ROWS}))
