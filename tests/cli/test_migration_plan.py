"""`hooksaga migrate --plan`: what is pending, said before it is done, and nothing is changed."""

import json
from pathlib import Path

import psycopg
import pytest

from docs.generators.schema_file import schema_text as catalog_of
from hooksaga.adapters import migrations
from hooksaga.adapters.database import DatabaseAddress
from hooksaga.local import migration_plan
from tests.cli.conftest import Run, runner_with
from tests.database.later import first_schema, plant

pytestmark = pytest.mark.database

PENDING = {
    "m101_region": "ALTER TABLE events ADD COLUMN region text; GRANT SELECT (region) ON events TO router_worker",
    "m102_index": "CREATE INDEX CONCURRENTLY idx_event_region ON public.events (region)",
    "m103_rewrite": "ALTER TABLE webhook_delivery_jobs ADD COLUMN token uuid DEFAULT gen_random_uuid();"
    " ALTER TABLE webhook_delivery_jobs DROP COLUMN slow CASCADE",
}

SHOWN = """
m101_region: one transaction
  runs        ALTER TABLE public.events
              GRANT
  adds        column events.region text
              right to SELECT (region) on events for router_worker
  locks       events ({size}): ACCESS EXCLUSIVE, blocks readers and writers for a moment

m102_index: one index CONCURRENTLY, outside of a transaction
  runs        CREATE INDEX public.idx_event_region
  adds        index idx_event_region
  locks       events ({size}): SHARE UPDATE EXCLUSIVE, reads all rows, blocks no reader or writer
"""


@pytest.fixture
def run_on(database_address: DatabaseAddress) -> Run:
    return runner_with({"HOOKSAGA_DATABASE_URL": database_address.url})


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A later version of the product, with migrations that the database does not have."""
    folder = plant(first_schema(tmp_path), **PENDING)
    for module in (migrations.migration_files, migration_plan.plan_migrations, migrations.migrate):
        monkeypatch.setattr(module, "__defaults__", (folder,))
    return folder


def test_a_database_that_has_everything(run_on: Run) -> None:
    assert run_on("migrate", "--plan").stdout == "the schema is up to date\n"


def test_what_is_pending_is_shown_and_nothing_is_changed(
    run_on: Run, later: Path, database_address: DatabaseAddress
) -> None:
    before = catalog_of(database_address.url)
    with psycopg.connect(database_address.url) as reader:
        reader.execute("LOCK TABLE events IN ACCESS SHARE MODE")
        result = run_on("migrate", "--plan")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("3 migrations to run on PostgreSQL 1")
    sized = SHOWN.format(size=result.stdout.split("events (", 1)[1].split(")", 1)[0])
    assert sized in result.stdout
    assert "takes away  column webhook_delivery_jobs.slow boolean" in result.stdout
    assert (
        "rewrites the table or an index of it, BLOCKS READERS AND WRITERS FOR AS LONG AS THAT TAKES"
        in result.stdout
    )
    assert catalog_of(database_address.url) == before


def test_the_plan_as_json(run_on: Run, later: Path) -> None:
    plan = json.loads(run_on("migrate", "--plan", "--json").stdout)
    assert [one["name"] for one in plan["migrations"]] == list(PENDING)
    assert [one["in_transaction"] for one in plan["migrations"]] == [True, False, True]
    (jobs,) = plan["migrations"][2]["tables"]
    assert (jobs["name"], jobs["lock"], jobs["rewrites"], jobs["blocks"]) == (
        "webhook_delivery_jobs",
        "ACCESS EXCLUSIVE",
        True,
        "readers and writers",
    )
    assert jobs["bytes"] > 0


def test_a_migration_that_would_fail_is_told(run_on: Run, later: Path) -> None:
    plant(later, m104_wrong="ALTER TABLE no_such_table ADD COLUMN a text")
    result = run_on("migrate", "--plan")
    assert result.exit_code == 1
    assert 'm104_wrong: relation "no_such_table" does not exist' in result.stderr


def test_a_newer_database_says_so(run_on: Run, database_address: DatabaseAddress) -> None:
    with psycopg.connect(database_address.url, autocommit=True) as connection:
        connection.execute("INSERT INTO hooksaga_migrations (name) VALUES ('999_later')")
    assert run_on("migrate", "--plan").stdout.startswith("unknown to this version, and ignored: 999_later\n")
