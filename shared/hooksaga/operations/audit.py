"""Audit: checks the invariants, one promise per query of sql/queries/audit.sql."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hooksaga.adapters.database import Connection, fetch_dicts
from hooksaga.adapters.queries import load_queries
from hooksaga.core.models import rfc3339

MAX_ROWS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, by the name of its query, and the first rows that break it: none when it holds."""

    promise: str
    rows: list[dict[str, Any]]

    def content(self) -> dict[str, Any]:
        """Return the finding as JSON content."""
        rows = [{name: _plain(value) for name, value in row.items()} for row in self.rows]
        return {"promise": self.promise, "ok": not rows, "rows": rows}


def _plain(value: Any) -> Any:
    return rfc3339(value) if isinstance(value, datetime) else value


def promises() -> list[str]:
    """Return the invariants in the order of the file."""
    return list(load_queries("audit"))


async def audit(connection: Connection) -> list[Finding]:
    """Check every promise in turn. Reads whole tables, so it is a command for operators, not part of the pipeline."""
    return [await audit_one(connection, promise) for promise in promises()]


async def audit_one(connection: Connection, promise: str) -> Finding:
    """Check the promise of that name."""
    query = load_queries("audit")[promise]
    return Finding(promise, await fetch_dicts(connection, query, {"limit": MAX_ROWS}))
