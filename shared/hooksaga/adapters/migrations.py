"""Migrates a database to the current schema: the files of sql/schema, then those of sql/migrations, each once.

A file and the record of its run are one transaction, under a lock of that transaction. So a killed process leaves
nothing behind, and a transaction pooler is no problem. A file that builds an index CONCURRENTLY is run outside of the
transaction that records it, and is resumed after a kill: see index_builds.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql

from hooksaga.adapters import libpq, session_settings
from hooksaga.adapters.database import DatabaseAddress, Role
from hooksaga.adapters.database_login import role_password
from hooksaga.adapters.index_builds import IndexBuilds, index_statement
from hooksaga.adapters.migration_lock import LockedTransactions, Row, Tell
from hooksaga.adapters.package_files import package_folder
from hooksaga.adapters.queries import load_queries
from hooksaga.core.errors import DatabaseUnavailable, MigrationFailed

SQL_DIR = package_folder("sql")

_LOAD = re.compile(r"^-- load: (functions/\w+\.sql)$", re.MULTILINE)

IAM_GROUP = "rds_iam"

TIMEOUT_SECONDS = 120.0
"""How long a step is retried while other sessions hold locks that it needs."""

Connection = psycopg.Connection[Row]


def migration_files(folder: Path = SQL_DIR) -> list[Path]:
    """Return the schema files, then the migrations, each in the order of their names. A file is recorded by its
    stem."""
    return [*sorted((folder / "schema").glob("*.sql")), *sorted((folder / "migrations").glob("*.sql"))]


def migration_text(path: Path) -> str:
    """Return the SQL text of a migration file.

    Each line `-- load: functions/<name>.sql` is replaced by the current content of that file.
    """
    folder = path.parents[1]
    return _LOAD.sub(lambda load: (folder / load[1]).read_text("utf-8"), path.read_text("utf-8"))


def migrate(
    address: DatabaseAddress,
    folder: Path = SQL_DIR,
    *,
    patience_seconds: float = TIMEOUT_SECONDS,
    tell: Tell = lambda _: None,
) -> list[str]:
    """Run the missing files, each in one transaction or as one build of an index, and return their names.

    Safe to repeat and to run concurrently. It also sets the required settings of every role in this database, sets
    how the roles log in (by IAM if the address has tokens, otherwise by a password derived from the address's), and
    restores the owner of the retention function after a restore. A step that waits for locks blocks other sessions for
    at most two seconds at a time; it is retried for patience_seconds, and `tell` receives the blocking sessions.
    Raises MigrationFailed with the database's message or the blocking sessions, and DatabaseUnavailable if the
    database is unreachable.
    """
    try:
        transactions = LockedTransactions(address, patience_seconds, tell)
        try:
            applied = _apply(transactions, IndexBuilds(address, patience_seconds, tell), folder)
            transactions.run("the settings of the roles", lambda connection: _settle(connection, address))
        finally:
            transactions.close()
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(str(error).strip()) from error
    except psycopg.Error as error:
        raise MigrationFailed(str(error).strip()) from error
    return applied


def _apply(transactions: LockedTransactions, builds: IndexBuilds, folder: Path) -> list[str]:
    done = transactions.run("the list of migrations", _applied)
    files = [path for path in migration_files(folder) if path.stem not in done]
    return [
        path.stem
        for path in files
        if transactions.run(path.stem, lambda c, path=path: _run_once(c, builds, path))
    ]


def _applied(connection: Connection) -> set[str]:
    connection.execute(load_queries("migrate")["create_migrations_table"])
    return {row["name"] for row in connection.execute(load_queries("migrate")["applied_migrations"])}


def _run_once(connection: Connection, builds: IndexBuilds, path: Path) -> bool:
    """Run a file and record it. Returns False if another process has run it meanwhile. Raises MigrationFailed."""
    if path.stem in _applied(connection):
        return False
    text = migration_text(path)
    if statement := index_statement(path.stem, text):
        builds.run(path.stem, statement)
    else:
        run_text(connection, path.stem, text)
    connection.execute(load_queries("migrate")["note_migration"], {"name": path.stem})
    return True


def run_text(connection: Connection, name: str, text: str) -> None:
    """Run the statements of a file in the caller's transaction. Raises MigrationFailed, or the error of a lock."""
    connection.execute(load_queries("migrate")["leave_bodies_unchecked"])
    try:
        connection.execute(text.encode())
    except (errors.LockNotAvailable, errors.QueryCanceled, errors.TransactionRollback, errors.InternalError_):
        raise
    except psycopg.DatabaseError as error:
        if connection.broken:
            raise
        raise MigrationFailed(f"{name}: {str(error).strip()}") from error


async def run_whole_schema(connection: psycopg.AsyncConnection[Any], folder: Path = SQL_DIR) -> None:
    """Run all files that are transactions in the caller's transaction, for a trial that is rolled back."""
    queries = load_queries("migrate")
    await connection.execute(queries["create_migrations_table"])
    await connection.execute(queries["leave_bodies_unchecked"])
    for path in migration_files(folder):
        if index_statement(path.stem, text := migration_text(path)) is None:
            await connection.execute(text.encode())
    await connection.execute(queries["give_retention_its_owner"])


def _settle(connection: Connection, address: DatabaseAddress) -> None:
    """Restore settings that a dump does not contain. Sets only what exists: an older version may have run other
    files."""
    names = {"names": [role.value for role in Role if role is not Role.OWNER]}
    roles = [Role(row["name"]) for row in connection.execute(load_queries("migrate")["roles"], names)]
    _set_logins(connection, address, roles)
    _state_settings(connection, roles)
    _give_retention_its_owner(connection)


def _set_logins(connection: Connection, address: DatabaseAddress, roles: list[Role]) -> None:
    """Let the roles log in by IAM, or by passwords if no role does so by IAM already. Raises MigrationFailed."""
    found = connection.execute(load_queries("migrate")["iam_logins"], {"group": IAM_GROUP}).fetchall()
    by_iam = {row["name"] for row in found}
    if address.mint_password:
        _log_in_by_iam(connection, [role for role in roles if role not in by_iam | {Role.OBSERVER}])
    elif not by_iam.intersection(roles):
        _set_passwords(connection, address, roles)


def _log_in_by_iam(connection: Connection, roles: list[Role]) -> None:
    """Make the roles members of the group whose logins RDS leaves to IAM, which takes no password."""
    try:
        for role in roles:
            group, user = sql.Identifier(IAM_GROUP), sql.Identifier(role.value)
            connection.execute(sql.SQL("GRANT {} TO {}").format(group, user))
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD NULL").format(user))
    except errors.UndefinedObject as error:
        raise MigrationFailed(
            f"the server has no IAM logins ({str(error).strip()}): they exist on Amazon RDS only"
        ) from error


def _set_passwords(connection: Connection, address: DatabaseAddress, roles: list[Role]) -> None:
    owners = libpq.owner_password(address.url)
    if not owners:
        return
    for role in roles:
        connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                sql.Identifier(role.value), sql.Literal(role_password(owners, role))
            )
        )


def _state_settings(connection: Connection, roles: list[Role]) -> None:
    """Set the roles' settings, except of roles that belong to another owner on this server."""
    optional = {**session_settings.GUARDED, **session_settings.OF_NEWER_SERVERS}
    found = connection.execute(load_queries("migrate")["settable"], {"names": list(optional)})
    settable = {row["name"]: optional[row["name"]] for row in found}
    (database,) = connection.execute(load_queries("migrate")["database_name"])
    for role in roles:
        try:
            with connection.transaction():
                wanted = session_settings.of_role(role.value) | settable
                _state_settings_of(connection, role, database["name"], wanted)
        except errors.InsufficientPrivilege:
            continue


def _state_settings_of(connection: Connection, role: Role, database: str, wanted: Mapping[str, str]) -> None:
    rows = connection.execute(load_queries("session")["stated_settings"], {"role": role.value}).fetchall()
    settings_params = {name.lower(): value for name, value in (row["setting"].split("=", 1) for row in rows)}
    for name in sorted(name for name, value in wanted.items() if settings_params.get(name) != value):
        connection.execute(
            sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                sql.Identifier(role.value),
                sql.Identifier(database),
                sql.Identifier(name),
                sql.Literal(wanted[name]),
            )
        )


def _give_retention_its_owner(connection: Connection) -> None:
    (function,) = connection.execute(load_queries("migrate")["find_retention_function"])
    if function["is_there"]:
        connection.execute(load_queries("migrate")["give_retention_its_owner"])
