"""Facts of a database for `hooksaga doctor`: the actual state, not the expected one.

They are read from the catalog, by any role that may read the list of migrations. Only storing an event is tested by
doing it."""

from typing import Any

from hooksaga.adapters.database import Connection, Role, fetch_dicts, refusals
from hooksaga.adapters.queries import load_queries
from hooksaga.core.event_input import EventDraft
from hooksaga.operations.audit import audit_one
from hooksaga.stages.accept_events import insert_events

RETENTION_ROLE = "retention_operator"
RETENTION_FUNCTIONS = (
    "prune_finished",
    "prune_dead_letters",
    "remove_payloads",
    "prune_events",
    "step_erasure",
)
"""Functions that RETENTION_ROLE owns."""
PRODUCERS = "event_producer"
"""Group role of the applications that add events by SQL."""

CONNECTIONS_PER_ROLE = 4
"""What one `hooksaga up` opens at most for one role."""

_RIGHTS = ("table_rights", "column_rights", "function_rights")
_LISTS = ("applied_migrations", "triggers", "idle_slots", *_RIGHTS)
_AUDITED = ("identity_near_its_end", "transaction_ids_near_their_end")
"""Promises of the audit that are checked from the catalog alone."""

_TRIED_TYPE = "doctor.tried"


async def read_facts(connection: Connection) -> dict[str, Any]:
    """Read the facts as JSON content: per block of sql/queries/doctor.sql a list of rows; objects: `server`, `owners`.

    Raises SchemaMismatch if no migration was ever run.
    """
    queries = load_queries("doctor")
    facts: dict[str, Any] = {name: await fetch_dicts(connection, queries[name], {}) for name in _LISTS}
    facts |= {name: (await audit_one(connection, name)).rows for name in _AUDITED}
    (facts["limits"],) = await fetch_dicts(connection, queries["limits"], {})
    facts["roles"] = await fetch_dicts(connection, queries["roles"], {"roles": sorted(_roles(facts))})
    (facts["owners"],) = await fetch_dicts(
        connection, queries["owners"], {"of_retention": [*RETENTION_FUNCTIONS]}
    )
    return {**facts, "server": await read_server(connection)}


async def read_server(connection: Connection) -> dict[str, Any]:
    """Read the one block that also works on older servers and empty databases."""
    (server,) = await fetch_dicts(connection, load_queries("doctor")["server"], {})
    return server


async def read_surroundings(connection: Connection) -> dict[str, Any]:
    """Read what a managed server decides, as the owner. Works on empty databases."""
    queries = load_queries("doctor")
    (facts,) = await fetch_dicts(connection, queries["surroundings"], {})
    roles = {"roles": [role.value for role in Role], "needed": CONNECTIONS_PER_ROLE}
    return {**facts, "limited_roles": await fetch_dicts(connection, queries["limited_roles"], roles)}


async def try_to_store(connection: Connection) -> None:
    """Store an event as a producer does, and roll it back; one id is used up. Its text has every length in UTF-8.

    Raises RowRefused, or any other error that a producer's event would cause.
    """
    async with refusals(), connection.transaction(force_rollback=True):
        await insert_events(connection, [EventDraft(_TRIED_TYPE, '{"text": "aé漢\U0001f600"}')])


def _roles(facts: dict[str, Any]) -> set[str]:
    """Return hooksaga's roles, and other roles that have a right."""
    ours = {role.value for role in Role if role is not Role.OWNER} | {RETENTION_ROLE, PRODUCERS}
    return ours | {row["role"] for name in _RIGHTS for row in facts[name]}
