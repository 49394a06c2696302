"""Every migration passes the gate, and planted ones that would stop a large database do not."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooksaga.adapters.migration_rehearsal import Rehearsed, rehearse
from hooksaga.adapters.migrations import SQL_DIR, migration_files, migration_text
from tests.database.later import first_schema, plant
from tests.database.migration_rules import BAD, GOOD, faults_of, named


@pytest.fixture(scope="module")
def empty(test_server: str, maintenance: psycopg.Connection) -> Iterator[str]:
    """A database for one rehearsal."""
    maintenance.execute("CREATE DATABASE rehearsed")
    yield make_conninfo(test_server, dbname="rehearsed")
    maintenance.execute("DROP DATABASE rehearsed WITH (FORCE)")


@pytest.fixture(scope="module")
def planted(empty: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rehearsed]:
    """The rehearsal of all planted migrations, the good ones first, by their descriptions."""
    bad = {name: text for name, (text, _) in BAD.items()}
    folder = first_schema(tmp_path_factory.mktemp("planted"))
    first = _texts(folder)
    later = _texts(plant(folder, **named(GOOD, 101), **named(bad, 201)))
    pending = {name: text for name, text in later.items() if name not in first}
    _, found = rehearse(empty, first, pending)
    return dict(zip([*GOOD, *BAD], found, strict=True))


def _texts(folder: Path) -> dict[str, str]:
    return {path.stem: migration_text(path) for path in migration_files(folder)}


def test_the_migrations_of_this_version(test_server: str, maintenance: psycopg.Connection) -> None:
    maintenance.execute("CREATE DATABASE of_this_version")
    try:
        texts = _texts(SQL_DIR)
        later = {path.stem for path in (SQL_DIR / "migrations").glob("*.sql")}
        schema = {name: text for name, text in texts.items() if name not in later}
        pending = {name: text for name, text in texts.items() if name in later}
        _, found = rehearse(make_conninfo(test_server, dbname="of_this_version"), schema, pending)
        assert {one.name: faults_of(one) for one in found if faults_of(one)} == {}
    finally:
        maintenance.execute("DROP DATABASE of_this_version WITH (FORCE)")


@pytest.mark.parametrize("name", GOOD)
def test_a_migration_that_only_adds_passes(planted: dict[str, Rehearsed], name: str) -> None:
    assert faults_of(planted[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_a_migration_that_stops_others_does_not(planted: dict[str, Rehearsed], name: str) -> None:
    assert BAD[name][1] in faults_of(planted[name])


def test_what_a_rehearsal_says_of_a_file(planted: dict[str, Rehearsed]) -> None:
    build, drop = planted["an index"], planted["no index any more"]
    assert (build.in_transaction, build.adds, build.locks) == (
        False,
        ["index idx_job_region"],
        {"webhook_delivery_jobs": "ShareUpdateExclusiveLock"},
    )
    assert (drop.in_transaction, drop.takes_away) == (False, ["index idx_job_region"])
    made = planted["a table"]
    assert "CREATE TABLE public.notes" in made.commands
    assert "column notes.text text" in made.adds
    assert made.locks == {"events": "ShareRowExclusiveLock"}
    assert planted["a constraint on what is there"].locks == {
        "webhook_delivery_jobs": "ShareUpdateExclusiveLock"
    }
