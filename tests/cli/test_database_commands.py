"""`migrate`, `audit` and `keys`, which go to the database itself."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import Result

from hooksaga.adapters import migrations
from hooksaga.adapters.database import Connection, DatabaseAddress
from hooksaga.adapters.secret_box import generate_key
from hooksaga.cli import database
from hooksaga.core.saga import SagaStatus
from hooksaga.local.postgres import EmbeddedPostgres
from tests.cli.conftest import Run, RunJson, RunningSystem, runner_with
from tests.cli.processes import wait_until
from tests.database.seed import Seed

UNREACHABLE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def run_on(database_address: DatabaseAddress) -> Run:
    """Runs commands on a migrated, empty database of this test's own."""
    return runner_with({"HOOKSAGA_DATABASE_URL": database_address.url})


def test_the_audit_of_a_good_database_is_good(run_on: Run) -> None:
    result = run_on("audit")
    assert result.exit_code == 0
    assert result.stdout.endswith("All invariants hold.\n")
    assert result.stdout.count(": ok, none found") >= 7


async def test_the_audit_tells_a_breach_with_its_rows(run_on: Run, seed: Seed) -> None:
    saga_id = await seed.saga()
    await seed.rewrite("UPDATE webhook_delivery_sagas SET attempt_count = 2 WHERE id = %s", [saga_id])
    result = await asyncio.to_thread(run_on, "audit", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ok"]) == (1, False)
    (broken,) = [invariant for invariant in found["invariants"] if not invariant["ok"]]
    assert broken["rows"] == [{"saga_id": saga_id, "attempt_count": 2, "applied_jobs": 0}]
    said = (await asyncio.to_thread(run_on, "audit")).stdout
    assert "attempt count is not the applied jobs: VIOLATION, 1 found" in said
    assert f"    saga_id {saga_id}, attempt_count 2, applied_jobs 0" in said


async def test_prune_deletes_what_is_old_and_an_event_says_so(run_on: Run, seed: Seed) -> None:
    await seed.make_old(await seed.saga(SagaStatus.COMPLETED))
    await seed.saga(SagaStatus.COMPLETED)

    def prune(*options: str) -> Any:
        return json.loads(run_on("prune", "--older-than", "30d", "--json", *options).stdout)

    counted = await asyncio.to_thread(prune, "--dry-run")
    assert (counted["sagas"], counted["jobs"], counted["dry_run"]) == (1, 1, True)
    done = await asyncio.to_thread(prune, "--batch", "1")
    assert (done["sagas"], done["jobs"], done["dry_run"]) == (1, 1, False)
    again = await asyncio.to_thread(run_on, "prune", "--older-than", "30d")
    assert "deleted: 0 deliveries, 0 attempts, 0 dead letters, 0 payloads, 0 events" in again.stdout
    assert (await asyncio.to_thread(run_on, "audit")).exit_code == 0


@pytest.mark.parametrize("age", ["23h", "0d", "30", "30 days", "-1d"])
def test_prune_refuses_an_age_that_is_none_or_too_small(run_on: Run, age: str) -> None:
    result = run_on("prune", f"--older-than={age}")
    assert result.exit_code == 2
    assert "--older-than" in result.stderr


def test_prune_needs_an_age(run_on: Run) -> None:
    assert run_on("prune").exit_code == 2


def test_an_event_whose_deliveries_were_pruned_says_so(
    run: Run, run_json: RunJson, running_system: RunningSystem
) -> None:
    """Through the API, and to a person."""
    sent = run("send", "-", "--json", stdin=b'{"event_type": "test.pruned", "payload": 1}')
    event_id = json.loads(sent.stdout)["id"]
    assert run_json("events", "show", event_id)["pruned_before"] is None
    url = EmbeddedPostgres(running_system.folder).start()
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        old = "UPDATE events SET created_at = '2020-01-01' WHERE event_type = 'test.pruned'"
        connection.execute(old)
        connection.execute("UPDATE retention_state SET horizon = '2021-01-01'")
    assert run_json("events", "show", event_id)["pruned_before"] == "2021-01-01T00:00:00.000000Z"
    assert (
        "deliveries that ended before 2021-01-01 00:00:00Z may have been pruned"
        in run("events", "show", event_id).stdout
    )


def test_a_new_key_is_one_that_the_settings_take(run_on: Run) -> None:
    key = run_on("secrets", "new-key").stdout.strip()
    assert json.loads(run_on("secrets", "new-key", "--json").stdout)["key"] != key
    assert run_on("secrets", "reseal", HOOKSAGA_SECRETS_KEY=f"{key},{key}").exit_code == 0


async def test_a_secret_that_no_key_opens_is_said(run_on: Run, seed: Seed) -> None:
    subscription_id = await seed.subscription()
    result = await asyncio.to_thread(run_on, "secrets", "reseal", HOOKSAGA_SECRETS_KEY=generate_key())
    assert result.exit_code == 1
    assert result.stdout == "0 of 1 secrets re-encrypted\n"
    assert f"rotate-secret {subscription_id}" in result.stderr


async def test_headers_that_are_sealed_anew_and_those_that_no_key_opens_are_said(
    run_on: Run, seed: Seed
) -> None:
    good, lost = await seed.subscription(headers={"x-a": "1"}), await seed.subscription()
    await seed.connection.execute(
        'UPDATE subscriptions SET headers = \'{"x-a": {"sealed": "damaged"}}\' WHERE id = %s', [lost]
    )
    keys = f"{generate_key()},{seed.secrets_key}"
    looked = await asyncio.to_thread(run_on, "secrets", "reseal", "--dry-run", HOOKSAGA_SECRETS_KEY=keys)
    assert "headers of 1 of 2 subscriptions with headers would be re-encrypted" in looked.stdout
    result = await asyncio.to_thread(run_on, "secrets", "reseal", HOOKSAGA_SECRETS_KEY=keys)
    assert result.exit_code == 1
    assert "headers of 1 of 2 subscriptions with headers re-encrypted" in result.stdout
    assert f"subscriptions update {lost} --header" in result.stderr
    assert f"subscription {good}" not in result.stderr


async def test_rows_that_another_session_has_locked_are_not_done_and_said(
    run_on: Run, seed: Seed, owner: Connection
) -> None:
    held = await seed.subscription(headers={"x-a": "1"})
    await seed.subscription(headers={"x-a": "2"})
    keys = {"HOOKSAGA_SECRETS_KEY": f"{generate_key()},{seed.secrets_key}"}

    async def reseal(*options: str) -> Result:
        return await asyncio.to_thread(run_on, "secrets", "reseal", *options, **keys)

    async with owner.transaction():
        await owner.execute("SELECT FROM subscriptions WHERE id = %s FOR UPDATE", [held])
        await owner.execute("SELECT FROM subscription_secrets WHERE subscription_id = %s FOR UPDATE", [held])
        result = await reseal()
        assert result.exit_code == 1
        assert "1 of 2 secrets re-encrypted" in result.stdout
        assert "headers of 1 of 2 subscriptions with headers re-encrypted" in result.stdout
        for values in ("secrets", "headers"):
            assert f"the {values} of 1 subscriptions are not re-encrypted, because another" in result.stderr
        assert f"locked their rows: {held};" in result.stderr
        result = await reseal("--json")
        found = {"checked": 4, "changed": 0, "unreadable": [], "locked": [held]}
        assert (result.exit_code, json.loads(result.stdout)) == (1, found)
    result = await reseal("--json")
    found = {"checked": 4, "changed": 2, "unreadable": [], "locked": []}
    assert (result.exit_code, json.loads(result.stdout)) == (0, found)


async def test_migrate_says_of_how_many_headers_it_could_not_seal(
    run_on: Run, seed: Seed, owner: Connection
) -> None:
    held, _ = await seed.subscription(), await seed.subscription()
    await seed.connection.execute('UPDATE subscriptions SET headers = \'{"x-a": "hush"}\'')
    async with owner.transaction():
        await owner.execute("SELECT FROM subscriptions WHERE id = %s FOR UPDATE", [held])
        result = await asyncio.to_thread(run_on, "migrate", HOOKSAGA_SECRETS_KEY=seed.secrets_key)
    assert result.exit_code == 0
    assert result.stdout == "encrypted the header values of 1 subscriptions\n"
    assert "locked 1 subscriptions with plain-text header values" in result.stderr
    assert "hooksaga secrets reseal" in result.stderr


async def test_migrate_seals_headers_where_the_key_is(run_on: Run, seed: Seed, tmp_path: Path) -> None:
    """And leaves them to those who have it where it is not, as the migrate function does."""
    await seed.subscription()
    await seed.connection.execute('UPDATE subscriptions SET headers = \'{"x-a": "hush"}\'')
    in_clear = "SELECT headers->>'x-a' = 'hush' FROM subscriptions"
    without = await asyncio.to_thread(run_on, "migrate", HOOKSAGA_DATA_DIR=str(tmp_path))
    assert without.stdout == "the schema is up to date\n"
    assert await seed.value(in_clear)
    result = await asyncio.to_thread(run_on, "migrate", HOOKSAGA_SECRETS_KEY=seed.secrets_key)
    assert result.stdout == "encrypted the header values of 1 subscriptions\n"
    assert not await seed.value(in_clear)
    again = await asyncio.to_thread(run_on, "migrate", HOOKSAGA_SECRETS_KEY=seed.secrets_key)
    assert "the schema is up to date" in again.stdout


def test_the_running_system_keeps_every_promise(run_json: RunJson) -> None:
    assert run_json("audit")["ok"]


def test_migrate_makes_the_embedded_database_and_leaves_it_stopped(make_folder: Callable[[], Path]) -> None:
    folder = make_folder()
    run = runner_with({"HOOKSAGA_DATA_DIR": str(folder)})
    assert run("audit").exit_code == 2
    first = run("migrate", "--json")
    assert "01_roles" in json.loads(first.stdout)["applied"]
    assert "the schema is up to date" in run("migrate").stdout
    assert not EmbeddedPostgres(folder).is_running()
    assert json.loads(run("audit", "--json").stdout)["ok"]
    assert not EmbeddedPostgres(folder).is_running()


def test_migrate_says_who_is_in_its_way_and_how_long_it_waits_is_chosen(
    run_on: Run, database_address: DatabaseAddress
) -> None:
    assert database.TIMEOUT_SECONDS == migrations.TIMEOUT_SECONDS
    with psycopg.connect(database_address.url, application_name="report") as reader:
        reader.execute("LOCK TABLE hooksaga_migrations")
        pid = reader.info.backend_pid
        result = run_on("migrate", "--patience", "4")
    assert result.exit_code == 1
    assert result.stdout == ""
    waits, given_up = result.stderr.splitlines()
    for line in (waits, given_up):
        assert f"pid {pid} (role postgres, application 'report', idle in transaction" in line
    assert "trying again in" in waits
    assert "timed out after" in given_up
    assert run_on("migrate").stdout == "the schema is up to date\n"


def test_a_server_that_runs_already_is_left_running(run_json: RunJson, run: Run) -> None:
    run_json("audit")
    assert run("stats").exit_code == 0


def test_a_key_works_until_it_is_revoked(run: Run, run_json: RunJson) -> None:
    created = run_json("keys", "create", "--name", "shop", "--scope", "events:write", "--tenant-id", "acme")
    key = {"HOOKSAGA_API_KEY": created["key"]}
    event = b'{"event_type": "test.key", "payload": 1}'
    assert run("send", "-", stdin=event, **key).exit_code == 0
    assert "forbidden (403)" in run("stats", **key).stderr
    assert run_json("keys", "revoke", str(created["id"])) == {"id": created["id"], "revoked": True}
    wait_until(lambda: "unauthorized (401)" in run("stats", **key).stderr, "the key is refused")
    refused = run("send", "-", stdin=event, **key)
    assert refused.exit_code == 2
    assert "unauthorized (401)" in refused.stderr


def test_the_list_shows_no_key(run: Run, run_json: RunJson) -> None:
    made = run("keys", "create", "--name", "listed")
    key = made.stdout.split()[-1]
    assert key.startswith("hs_")
    assert "not shown again" in made.stderr
    table = run("keys", "list").stdout
    assert "listed" in table
    assert f"...{key[-4:]}" in table
    assert key not in table
    assert {"id", "name", "last_four", "scopes", "revoked_at"} <= run_json("keys", "list")["items"][0].keys()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["create"], 2, "--name"),
        (["create", "--name", ""], 2, "--name must have 1 to 100"),
        (["create", "--name", "a", "--scope", "all"], 2, "all"),
        (["create", "--name", "a", "--tenant-id", "a b"], 1, "tenant_id"),
        (["revoke", "999999999"], 1, "there is no key 999999999"),
    ],
)
def test_what_is_wrong_is_said(run: Run, arguments: list[str], code: int, words: str) -> None:
    result = run("keys", *arguments)
    assert result.exit_code == code, result.output
    assert words in result.stderr


@pytest.mark.parametrize(
    "command",
    [["migrate"], ["audit"], ["keys", "list"], ["prune", "--older-than", "1d"], ["secrets", "reseal"]],
)
def test_a_database_that_is_away_is_said(command: list[str]) -> None:
    result = runner_with({"HOOKSAGA_DATABASE_URL": UNREACHABLE})(*command)
    assert result.exit_code == 1
    assert "hooksaga: " in result.stderr
    assert "refused" in result.stderr


def test_a_database_without_the_schema_is_said(test_server: str, maintenance: psycopg.Connection) -> None:
    maintenance.execute("CREATE DATABASE without_schema")
    result = runner_with({"HOOKSAGA_DATABASE_URL": test_server.replace("/hooksaga?", "/without_schema?")})(
        "audit"
    )
    maintenance.execute("DROP DATABASE without_schema WITH (FORCE)")
    assert result.exit_code == 1
    assert "hooksaga migrate" in result.stderr
