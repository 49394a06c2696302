"""Brings a database to the newest schema with yoyo, which keeps plain .sql files and remembers what it ran.

yoyo marks its own lock with a row, which a killed process leaves behind. So an advisory lock is taken first: it
goes with its connection, and its holder may clear a row that nobody owns any more.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from yoyo import get_backend, read_migrations  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from shared.adapters.database import DatabaseAddress, Role, role_password
from shared.core.errors import DatabaseUnavailable, MigrationFailed

MIGRATIONS_DIR = Path(__file__).resolve().parents[2] / "sql" / "migrations"

_ADVISORY_LOCK = 0x686F6F6B73616761  # "hooksaga"


def migrate(address: DatabaseAddress, directory: Path = MIGRATIONS_DIR) -> list[str]:
    """Run what is missing, each file in one transaction, and give the names of what was run.

    Safe to run again, and by several processes at once: one works, the others wait and find nothing to do. With
    a password in the address, every role's password is set to the one derived from it; and the function that
    deletes gets its owner back where a restored dump has lost it. Raises MigrationFailed with the database's own
    words, and DatabaseUnavailable when it cannot be reached.
    """
    try:
        with _only_one(address) as connection:
            applied = _apply(address.url, directory)
            _set_passwords(connection, address)
            _give_retention_its_owner(connection)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(str(error).strip()) from error
    except psycopg.Error as error:
        raise MigrationFailed(str(error).strip()) from error
    return applied


@contextmanager
def _only_one(address: DatabaseAddress) -> Generator[psycopg.Connection]:
    with psycopg.connect(address.url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
        yield connection


def _apply(url: str, directory: Path) -> list[str]:
    backend = get_backend(_yoyo_url(url))
    try:
        backend.break_lock()
        missing = backend.to_apply(read_migrations(str(directory)))
        with backend.lock():
            backend.apply_migrations(missing)
        return [str(migration.id) for migration in missing]
    finally:
        backend.connection.close()


def _yoyo_url(url: str) -> str:
    """yoyo wants a URL that names its driver, with everything else as libpq has it."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    user = quote(parts.pop("user", ""), safe="")
    password = quote(parts.pop("password", ""), safe="")
    database = quote(parts.pop("dbname", "postgres"), safe="")
    host, port = parts.pop("host", ""), parts.pop("port", "")
    options = {"host": host, "port": port, **parts}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items() if value)
    return f"postgresql+psycopg://{user}:{password}@/{database}?{query}"


def _set_passwords(connection: psycopg.Connection, address: DatabaseAddress) -> None:
    given = conninfo_to_dict(address.url).get("password")
    if not given:
        return
    for role in Role:
        if role is not Role.OWNER:
            connection.execute(
                sql.SQL("ALTER ROLE {} PASSWORD {}").format(
                    sql.Identifier(role.value), sql.Literal(role_password(str(given), role))
                )
            )


def _give_retention_its_owner(connection: psycopg.Connection) -> None:
    """Only where the schema has come so far: a test, or an old version, may run other files."""
    if connection.execute("SELECT to_regprocedure('give_retention_its_owner()')").fetchone() != (None,):
        connection.execute("SELECT give_retention_its_owner()")
