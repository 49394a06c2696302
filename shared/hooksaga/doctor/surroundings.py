"""Checks of a managed server (RDS, Aurora, Cloud SQL, a pooler in front): what it lacks for hooksaga.

Rights and poolers are tried; what is tried is rolled back.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, fetch_dicts, refusals
from hooksaga.adapters.migrations import run_whole_schema
from hooksaga.adapters.pooler_trial import Pooling, try_pooling
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import HooksagaError
from hooksaga.doctor.check import Check
from hooksaga.local.given_database import run_as
from hooksaga.operations.doctor import CONNECTIONS_PER_ROLE, read_surroundings

POOLER = "connections behave like the server's own"
MIGRATES = "the owner can migrate"
NO_POOLER = "no pooler"
SERVER = "the server's settings suit hooksaga"

UP_CONNECTIONS = 30
"""What one `hooksaga up` opens at most, all roles together."""

_OTHERS_ROLES = (
    "another owner has created hooksaga's roles on this server: as that owner or an administrator, "
    "GRANT retention_operator TO {owner} WITH ADMIN OPTION"
)
_REMEDIES = (
    ("create role", "ALTER ROLE {owner} CREATEROLE, as an administrator"),
    ("schema public", "GRANT CREATE ON SCHEMA public TO {owner}, as the owner of the database"),
    ("for database", "ALTER DATABASE {database} OWNER TO {owner}, as an administrator"),
    ("grant role", _OTHERS_ROLES),
    ("admin option", _OTHERS_ROLES),
    (
        "must be owner",
        "run `hooksaga migrate` as the user that owns the tables, or REASSIGN OWNED BY it TO {owner}",
    ),
    ("read-only", "connect to the server that accepts writes"),
)
"""Parts of the server's message, and what to do."""
_OTHER_REMEDY = "see docs/operations/database.md, Managed servers"


async def check_pooler(address: DatabaseAddress) -> Check:
    """Raises DatabaseUnavailable if the database does not answer."""
    return judge_pooling(await try_pooling(address), prepare=address.prepare)


def judge_pooling(pooling: Pooling, *, prepare: bool) -> Check:
    if not pooling.is_pooled:
        return Check(POOLER, seen=NO_POOLER)
    if pooling.transaction_error:
        fault = "a pooler refuses transactions: set pool_mode = transaction or session"
        return Check(POOLER, [f"{pooling.transaction_error}: {fault}"], "a pooler")
    if not pooling.prepared_error:
        return Check(POOLER, seen="a pooler, which keeps transactions and prepared statements")
    fault = (
        "a pooler mixes the prepared statements of its clients: unset HOOKSAGA_PREPARED_STATEMENTS, or use a pooler "
        "that keeps them (PgBouncer 1.21 with max_prepared_statements)"
    )
    faults = [f"{pooling.prepared_error}: {fault}"] if prepare else []
    return Check(POOLER, faults, "a pooler, which keeps transactions and mixes prepared statements")


async def check_surroundings(address: DatabaseAddress, *, is_pooled: bool) -> AsyncIterator[Check]:
    """Check a server that answers, whether its database is migrated or empty."""
    facts = await run_as(address, Role.OWNER, read_surroundings)
    yield judge_settings(facts, is_pooled=is_pooled)
    try:
        await run_as(address, Role.OWNER, try_to_migrate)
    except HooksagaError as error:
        yield Check(MIGRATES, [_with_remedy(str(error).splitlines()[0], facts)], facts["owner"])
        return
    yield Check(MIGRATES, seen=f"{facts['owner']}, tried and rolled back")


async def try_to_migrate(connection: Connection) -> None:
    """Do what migrations need rights for, and roll it back: on an empty database the whole first schema.

    Raises HooksagaError with the server's message.
    """
    queries = load_queries("doctor")
    (migrated,) = await fetch_dicts(connection, queries["has_migrations"], {})
    async with refusals(), connection.transaction(force_rollback=True):
        if migrated["answer"]:
            await connection.execute(queries["try_to_own"])
        else:
            await run_whole_schema(connection)


def _with_remedy(message: str, facts: dict[str, Any]) -> str:
    remedy = next((cure for words, cure in _REMEDIES if words in message), _OTHER_REMEDY)
    return f"{message}: {remedy.format(owner=facts['owner'], database=facts['database'])}"


def judge_settings(facts: dict[str, Any], *, is_pooled: bool) -> Check:
    faults = [*_wrong_texts(facts), *_wrong_settings(facts)]
    faults += _short_time(facts) if is_pooled else _few_connections(facts)
    seen = f"{facts['encoding']}, {facts['connection_limit']} connections"
    return Check(SERVER, faults, seen)


def _wrong_texts(facts: dict[str, Any]) -> Iterator[str]:
    database = facts["database"]
    if facts["encoding"] != "UTF8":
        yield (
            f"the database has the encoding {facts['encoding']}, which cannot store every text: CREATE DATABASE … "
            "ENCODING 'UTF8' TEMPLATE template0, and move to it"
        )
    if facts["collation_changed"]:
        yield (
            f"the collation of the operating system has changed ({facts['collation_changed']}), so an index of texts "
            f"can miss rows: REINDEX DATABASE CONCURRENTLY {database}, then ALTER DATABASE {database} REFRESH "
            "COLLATION VERSION"
        )


def _wrong_settings(facts: dict[str, Any]) -> Iterator[str]:
    for name in facts["off"]:
        yield f"{name} is off, so dead rows stay and every poll becomes slower: switch it on"


def _short_time(facts: dict[str, Any]) -> Iterator[str]:
    if facts["small_statement_timeout"]:
        yield (
            f"sessions of {facts['owner']} end a statement after {facts['small_statement_timeout']}, which can end the "
            f"build of an index behind a pooler: ALTER ROLE {facts['owner']} SET statement_timeout = 0"
        )


def _few_connections(facts: dict[str, Any]) -> Iterator[str]:
    limit = facts["connection_limit"]
    if limit < UP_CONNECTIONS:
        yield (
            f"the database accepts {limit} connections, and one `hooksaga up` opens up to {UP_CONNECTIONS}: raise "
            f"max_connections and the limit of the database, or put a pooler in front"
        )
    for row in facts["limited_roles"]:
        yield (
            f"{row['name']} may open {row['connections']} connections and needs {CONNECTIONS_PER_ROLE}: "
            f"ALTER ROLE {row['name']} CONNECTION LIMIT -1"
        )
