"""Dumps a database and restores it elsewhere, with the commands of docs/operations/database.md."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from typer.testing import Result

from hooksaga.local.postgres import EmbeddedPostgres
from hooksaga.local.postgres_build import binaries
from tests.cli.conftest import runner_with

DUMP = ("--format=custom",)
RESTORE = ("--clean", "--if-exists", "--no-owner", "--single-transaction")


def tool(name: str, *arguments: str) -> str:
    """Return the output of a PostgreSQL program, which must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run(
        [str(binaries() / name), *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(url: str, *arguments: str, **settings: str) -> Result:
    """A command of hooksaga on the database."""
    return runner_with({"HOOKSAGA_DATABASE_URL": url, **settings})(*arguments)


def command(url: str, *arguments: str, **settings: str) -> str:
    """Return the output of a command, which must succeed."""
    result = run(url, *arguments, **settings)
    assert result.exit_code == 0, result.output
    return result.stdout


def dump_of(url: str, folder: Path) -> Path:
    path = folder / "hooksaga.dump"
    tool("pg_dump", *DUMP, f"--file={path}", url)
    return path


def restore(dump: Path, target: str) -> None:
    """Steps 1 to 3 of the page."""
    command(target, "migrate")
    chosen = dump.with_name("chosen")
    listed = tool("pg_restore", "--list", str(dump))
    chosen.write_text("\n".join(line for line in listed.splitlines() if "DEFAULT ACL" not in line))
    tool("pg_restore", *RESTORE, f"--use-list={chosen}", f"--dbname={target}", str(dump))
    assert command(target, "migrate") == "the schema is up to date\n"


@contextmanager
def new_server() -> Iterator[dict[str, str]]:
    """A server that has never heard of hooksaga: for each login an empty database of its own, by its URL."""
    folder = Path(tempfile.mkdtemp(prefix=f"hooksaga-tests-{os.getpid()}-"))
    server = EmbeddedPostgres(folder)
    try:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE ROLE master LOGIN CREATEROLE CREATEDB")
            connection.execute("CREATE DATABASE of_postgres OWNER postgres")
            connection.execute("CREATE DATABASE of_master OWNER master")
        logins = ("postgres", "master")
        yield {login: make_conninfo(url, user=login, dbname=f"of_{login}") for login in logins}
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
