"""The facts of a database that `hooksaga doctor` judges: what is there, not what should be. Reads the catalog only, as
any role that may read the list of migrations."""

from typing import Any

from shared.adapters.database import Connection, Role, fetch_dicts
from shared.adapters.queries import load_queries

RETENTION_ROLE = "retention_operator"

_RIGHTS = ("table_rights", "column_rights", "function_rights")
_LISTS = ("applied_migrations", "triggers", *_RIGHTS)


async def read_facts(connection: Connection) -> dict[str, Any]:
    """JSON content: a list of rows for each block of sql/queries/doctor.sql, an object for `server` and `owners`.

    Raises SchemaMismatch where no migration ever ran.
    """
    queries = load_queries("doctor")
    facts: dict[str, Any] = {name: await fetch_dicts(connection, queries[name], {}) for name in _LISTS}
    facts["roles"] = await fetch_dicts(connection, queries["roles"], {"roles": sorted(_roles(facts))})
    (facts["owners"],) = await fetch_dicts(connection, queries["owners"], {})
    return {**facts, "server": await read_server(connection)}


async def read_server(connection: Connection) -> dict[str, Any]:
    """The one block that older servers and empty databases answer too."""
    (server,) = await fetch_dicts(connection, load_queries("doctor")["server"], {})
    return server


def _roles(facts: dict[str, Any]) -> set[str]:
    """Those that hooksaga makes, and whoever else was given a right."""
    ours = {role.value for role in Role if role is not Role.OWNER} | {RETENTION_ROLE}
    return ours | {row["role"] for name in _RIGHTS for row in facts[name]}
