"""The audit finds each broken promise, by its own name and by no other, and nothing where all is well.

Most of these states cannot be made in any other way than by a superuser with all guards switched off.
"""

import asyncio
from datetime import UTC, datetime
from typing import LiteralString

import pytest

from hooksaga.adapters.database import Connection, Role, fetch_dicts
from hooksaga.adapters.queries import load_queries
from hooksaga.core.erasures import NewErasure
from hooksaga.core.event_input import EventDraft
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import requeue, resend
from hooksaga.operations.api_keys import create_api_key, generate_api_key
from hooksaga.operations.audit import audit
from hooksaga.operations.erasures import start_erasure
from hooksaga.operations.event_types import EventTypeContent, put_event_type
from hooksaga.operations.requester import Requester
from hooksaga.operations.work_state import begin_work, end_work, is_at_rest
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.bulk_rows import backfill_of, requeue_of, started
from tests.database.seed import POLICY, Seed


@pytest.fixture
async def auditor(connect: Connect) -> Connection:
    return await connect(Role.ADMIN)


async def broken(auditor: Connection) -> set[str]:
    return {finding.invariant for finding in await audit(auditor) if finding.rows}


async def test_a_database_at_work_keeps_every_promise(auditor: Connection, seed: Seed) -> None:
    for status in SagaStatus:
        await seed.saga(status)
    await seed.event_for(await seed.subscription())
    await seed.claim(await seed.job())
    await seed.finish(await seed.job(), "http_503")
    await orchestrate.cancel_saga(seed.connection, POLICY, await seed.saga())
    await requeue.requeue_one(seed.connection, await seed.dead_letter())
    retried = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(retried)
    await seed.finish(await seed.start(retried))
    await orchestrate.apply_results(seed.connection, POLICY)
    assert await broken(auditor) == set()


async def test_an_empty_database_keeps_every_promise(auditor: Connection) -> None:
    assert await broken(auditor) == set()
    assert len(await audit(auditor)) == len(load_queries("audit"))


async def test_an_event_that_nobody_routed(auditor: Connection, seed: Seed) -> None:
    event_id = await seed.event_for(await seed.subscription())
    await seed.rewrite("DELETE FROM routing_outbox")
    assert await broken(auditor) == {"event_neither_waiting_nor_routed"}
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert [row["event_id"] for row in finding.rows] == [event_id]


@pytest.mark.parametrize("hours", [-1, 0, 1])
async def test_a_saga_that_is_missing_whatever_the_clocks_said(
    auditor: Connection, seed: Seed, hours: int
) -> None:
    await seed.saga()
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")
    await seed.rewrite("UPDATE events SET created_at = created_at + make_interval(hours => %s)", [hours])
    assert await broken(auditor) == {"matching_subscription_without_saga"}


async def test_a_saga_that_the_routers_own_comparison_would_excuse(auditor: Connection, seed: Seed) -> None:
    """The subscription's mark is wrong, so that the router leaves out what it must not."""
    subscription_id = await seed.subscription("a")
    await seed.rewrite(
        "UPDATE subscriptions SET eligible_after_event = 1000000,"
        " eligible_snapshot = '9000000000000000000:9000000000000000000:'"
    )
    event_id = await seed.event("a")
    assert (await route_events(seed.connection)).saga_ids == []
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert finding.invariant == "matching_subscription_without_saga"
    assert finding.rows == [{"event_id": event_id, "subscription_id": subscription_id}]


@pytest.mark.parametrize(
    "change",
    ["active = false", "event_types = '{b}'", "deleted_at = now(), active = false", "max_retry_limit = 3"],
)
async def test_a_saga_that_is_missing_whatever_became_of_the_subscription(
    auditor: Connection, seed: Seed, change: str
) -> None:
    saga_id = await seed.saga()
    event_id = await seed.value("SELECT event_id FROM webhook_delivery_sagas WHERE id = %s", [saga_id])
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")
    await seed.connection.execute(f"UPDATE subscriptions SET {change}".encode())
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert finding.invariant == "matching_subscription_without_saga"
    assert [row["event_id"] for row in finding.rows] == [event_id]


@pytest.mark.parametrize("waiting", [1, 501])
async def test_events_that_waited_when_a_subscription_became_eligible_are_no_breach(
    auditor: Connection, seed: Seed, waiting: int
) -> None:
    """More than 500 are not named one by one; then the router's comparison has to do."""
    await seed.accept(*[EventDraft("a", "{}")] * waiting)
    subscription_id = await seed.subscription("a")
    newer = await seed.event("a")
    named = "SELECT waiting_events IS NOT NULL AS named FROM subscription_history ORDER BY id DESC LIMIT 1"
    assert await seed.value(named) is (waiting <= 500)
    assert len((await route_events(seed.connection, max_events=1000)).saga_ids) == 1
    assert await broken(auditor) == set()
    await seed.rewrite("DELETE FROM webhook_delivery_sagas")
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert finding.rows == [{"event_id": newer, "subscription_id": subscription_id}]


async def test_a_routing_that_did_not_see_the_subscription_yet_is_no_breach(
    auditor: Connection, seed: Seed, connect: Connect
) -> None:
    event_id = await seed.event("a")
    async with seed.connection.transaction():
        await seed.subscription("a")
        assert (await route_events(await connect(Role.ROUTER))).event_ids == [event_id]
    assert await broken(auditor) == set()


async def test_a_pair_with_two_first_sagas(auditor: Connection, seed: Seed) -> None:
    await seed.saga()
    await seed.connection.execute("DROP INDEX uniq_saga_event_subscription")
    await seed.rewrite(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id)"
        " SELECT event_id, subscription_id FROM webhook_delivery_sagas"
    )
    assert await broken(auditor) == {"pair_with_two_first_sagas"}


async def test_sagas_and_lanes_that_name_what_is_not_there(auditor: Connection, seed: Seed) -> None:
    await seed.saga(SagaStatus.PENDING)
    operation = await started(seed.connection, requeue_of())
    await seed.rewrite(
        "INSERT INTO bulk_operation_lanes (operation_id, subscription_id, matched) VALUES (%s, 1000000, 0)",
        [operation.id],
    )
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert (finding.invariant, [row["id"] for row in finding.rows]) == (
        "row_that_names_what_is_not_there",
        [operation.id],
    )
    await seed.rewrite("UPDATE webhook_delivery_sagas SET requeued_from = 1000000")
    assert "row_that_names_what_is_not_there" in await broken(auditor)


async def test_a_saga_in_progress_without_a_job(auditor: Connection, seed: Seed) -> None:
    await seed.job()
    await seed.rewrite("DELETE FROM webhook_delivery_jobs")
    assert await broken(auditor) == {"saga_with_wrong_active_jobs"}


@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.PENDING_RETRY, SagaStatus.DEAD_LETTERED])
async def test_a_job_for_a_saga_that_should_have_none(
    auditor: Connection, seed: Seed, status: SagaStatus
) -> None:
    await seed.saga(status)
    await seed.rewrite(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
        " SELECT id, subscription_id, 9, now() FROM webhook_delivery_sagas"
    )
    assert await broken(auditor) == {"saga_with_wrong_active_jobs"}


async def test_two_open_jobs_of_one_saga(auditor: Connection, seed: Seed) -> None:
    await seed.finish(await seed.job(), "http_503")
    await seed.rewrite(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
        " SELECT id, subscription_id, 2, now() FROM webhook_delivery_sagas"
    )
    assert await broken(auditor) == {"saga_with_wrong_active_jobs"}


@pytest.mark.parametrize("count", [0, 3])
async def test_attempts_that_are_not_the_results_taken(auditor: Connection, seed: Seed, count: int) -> None:
    await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.rewrite(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status, finished_at,"
        " error_code, leased_at) SELECT saga_id, subscription_id, 2, attempt_at + interval '1 s', status,"
        " finished_at, error_code, leased_at FROM webhook_delivery_jobs"
    )
    await seed.rewrite("UPDATE webhook_delivery_sagas SET attempt_count = 2")
    assert await broken(auditor) == set()
    await seed.rewrite("UPDATE webhook_delivery_sagas SET attempt_count = %s", [count])
    assert await broken(auditor) == {"attempt_count_is_not_the_applied_jobs"}


async def test_more_attempts_than_any_limit_allows(auditor: Connection, seed: Seed) -> None:
    await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.rewrite(
        "INSERT INTO webhook_delivery_jobs"
        " (saga_id, subscription_id, attempt_number, attempt_at, status, error_code)"
        " SELECT id, subscription_id, n, now() + n * interval '1 s', 'Failed', 'http_503'"
        " FROM webhook_delivery_sagas, generate_series(2, 51) AS n"
    )
    await seed.rewrite("UPDATE webhook_delivery_sagas SET attempt_count = 51")
    assert await broken(auditor) == {"attempt_count_over_any_limit"}


async def test_a_dead_saga_without_a_dead_letter(auditor: Connection, seed: Seed) -> None:
    await seed.dead_letter()
    await seed.rewrite("DELETE FROM dead_letters")
    assert await broken(auditor) == {"dead_saga_without_its_dead_letter"}


@pytest.mark.parametrize(
    "lie",
    [
        "payload_snapshot = '{\"n\":  1}'",
        "subscription_id = subscription_id + 1",
        "event_id = (SELECT max(id) FROM events)",
    ],
)
async def test_a_dead_letter_that_is_not_true(auditor: Connection, seed: Seed, lie: str) -> None:
    await seed.dead_letter()
    await seed.event("other")
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL session_replication_role = replica")
        await seed.connection.execute(f"UPDATE dead_letters SET {lie}".encode())
    assert await broken(auditor) == {"dead_letter_untrue"}


async def test_a_dead_letter_of_a_saga_that_lives(auditor: Connection, seed: Seed) -> None:
    await seed.dead_letter()
    await seed.rewrite("UPDATE webhook_delivery_sagas SET status = 'PendingRetry'")
    assert await broken(auditor) == {"dead_letter_untrue"}


BROKEN_HISTORIES: list[LiteralString] = [
    "UPDATE webhook_delivery_jobs SET status = 'Failed', error_code = 'http_503'",
    "UPDATE webhook_delivery_jobs SET status = 'Completed' WHERE attempt_number = 1",
]


@pytest.mark.parametrize("change", BROKEN_HISTORIES)
async def test_a_completed_saga_whose_last_job_alone_did_not_complete(
    auditor: Connection, seed: Seed, change: LiteralString
) -> None:
    saga_id = await seed.saga(SagaStatus.PENDING_RETRY)
    await seed.make_due(saga_id)
    await seed.finish(await seed.start(saga_id))
    await orchestrate.apply_results(seed.connection, POLICY)
    await seed.rewrite(change)
    assert await broken(auditor) == {"completed_saga_without_one_last_completed_job"}


@pytest.mark.parametrize("status", [SagaStatus.PENDING, SagaStatus.PENDING_RETRY])
@pytest.mark.parametrize(("minutes", "expected"), [(2, set[str]()), (4, {"saga_waits_too_long"})])
async def test_a_saga_that_waits_too_long(
    auditor: Connection, seed: Seed, status: SagaStatus, minutes: int, expected: set[str]
) -> None:
    await seed.saga(status)
    await seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() - %s * interval '1 minute'", [minutes]
    )
    assert await broken(auditor) == expected


@pytest.mark.parametrize(("minutes", "expected"), [(2, set[str]()), (4, {"lease_over_too_long"})])
async def test_a_lease_that_nobody_ended(
    auditor: Connection, seed: Seed, minutes: int, expected: set[str]
) -> None:
    await seed.claim(await seed.job())
    await seed.rewrite(
        "UPDATE webhook_delivery_jobs SET lease_until = now() - %s * interval '1 minute'", [minutes]
    )
    assert await broken(auditor) == expected


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [(None, set[str]()), (2, set[str]()), (4, {"saga_waits_too_long", "lease_over_too_long"})],
)
async def test_what_waits_is_judged_by_how_long_the_pipeline_is_at_work(
    auditor: Connection, seed: Seed, minutes: int | None, expected: set[str]
) -> None:
    """Hours overdue in a database that nobody works on, or only for so many minutes."""
    await seed.saga()
    await seed.claim(await seed.job())
    await seed.rewrite("UPDATE webhook_delivery_sagas SET next_attempt_at = now() - interval '5 hours'")
    await seed.rewrite("UPDATE webhook_delivery_jobs SET lease_until = now() - interval '5 hours'")
    await seed.rewrite(
        "UPDATE work_state SET at_work_since = now() - make_interval(mins => %s::int)", [minutes]
    )
    assert await broken(auditor) == expected
    assert await is_at_rest(auditor) is (minutes is None)


async def test_work_that_has_begun_is_noted_once(connect: Connect, seed: Seed) -> None:
    cleaner = await connect(Role.LEASE_CLEANER)
    await end_work(cleaner)
    assert await is_at_rest(cleaner)
    begun: list[object] = []
    for _ in range(2):
        await begin_work(cleaner)
        begun.append(await seed.value("SELECT at_work_since FROM work_state"))
    assert begun[0] == begun[1] is not None


async def test_a_lock_on_the_note_delays_nothing(connect: Connect, seed: Seed) -> None:
    cleaner = await connect(Role.LEASE_CLEANER)
    await end_work(cleaner)
    async with seed.connection.transaction():
        await seed.connection.execute("SELECT FROM work_state FOR UPDATE")
        await asyncio.wait_for(begin_work(cleaner), 5)
    assert await is_at_rest(cleaner)


@pytest.mark.parametrize("column", ["event_id", "subscription_id"])
async def test_a_requeued_saga_of_another_pair(auditor: Connection, seed: Seed, column: str) -> None:
    await requeue.requeue_one(seed.connection, await seed.dead_letter())
    await seed.event_for(await seed.subscription())
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL session_replication_role = replica")
        statement = (
            f"UPDATE webhook_delivery_sagas SET {column} = {column} + 1 WHERE requeued_from IS NOT NULL"
        )
        await seed.connection.execute(statement.encode())
    assert await broken(auditor) == {"requeued_saga_with_another_pair"}


@pytest.mark.parametrize("column", ["event_id", "subscription_id"])
async def test_a_resent_saga_of_another_pair(auditor: Connection, seed: Seed, column: str) -> None:
    await resend.resend_saga(seed.connection, await seed.saga(SagaStatus.COMPLETED), tenant_id=None)
    await seed.event_for(await seed.subscription())
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL session_replication_role = replica")
        statement = f"UPDATE webhook_delivery_sagas SET {column} = {column} + 1 WHERE resent_from IS NOT NULL"
        await seed.connection.execute(statement.encode())
    assert await broken(auditor) == {"resent_saga_with_another_pair"}


LAST_ID = 2**63 - 1


@pytest.mark.parametrize(
    "table",
    ["events", "subscriptions", "subscription_secrets", "webhook_delivery_jobs", "dead_letters", "api_keys"],
)
async def test_ids_that_run_out(auditor: Connection, seed: Seed, table: str) -> None:
    await seed.connection.execute(f"SELECT setval('{table}_id_seq', {LAST_ID} / 100 * 89)".encode())
    assert await broken(auditor) == set()
    await seed.connection.execute(f"SELECT setval('{table}_id_seq', {LAST_ID} / 100 * 91)".encode())
    assert await broken(auditor) == {"identity_near_its_end"}
    (finding,) = [finding for finding in await audit(auditor) if finding.rows]
    assert finding.rows == [
        {"table_name": table, "last_id": LAST_ID // 100 * 91, "greatest_id": LAST_ID},
    ]


async def test_ids_that_are_given_out_again(auditor: Connection, seed: Seed) -> None:
    """As after a restore of the rows without the sequences, for every table with ids."""
    await requeue.requeue_one(seed.connection, await seed.dead_letter())
    await started(seed.connection, backfill_of(await seed.subscription(), since=datetime.now(UTC)))
    await create_api_key(seed.connection, generate_api_key(), name="one")
    erasure = NewErasure(tenant_id="default", reason="one")
    await start_erasure(seed.connection, erasure, Requester(None, "one", None))
    await put_event_type(seed.connection, "a", EventTypeContent())
    assert await broken(auditor) == set()
    sequences = await seed.rows(
        "SELECT c.relname::text AS of_table, s.seqrelid::regclass::text AS name FROM pg_sequence s"
        " JOIN pg_depend d ON d.objid = s.seqrelid AND d.deptype = 'i' JOIN pg_class c ON c.oid = d.refobjid"
    )
    assert len(sequences) == 11
    for sequence in sequences:
        await seed.connection.execute(f"ALTER SEQUENCE {sequence['name']} RESTART".encode())
        (finding,) = [finding for finding in await audit(auditor) if finding.rows]
        assert finding.invariant == "identity_behind_its_rows"
        assert [row["table_name"] for row in finding.rows] == [sequence["of_table"]]
        await seed.connection.execute(f"ALTER SEQUENCE {sequence['name']} RESTART WITH 1000".encode())
    assert await broken(auditor) == set()


async def test_transaction_ids_that_run_out(auditor: Connection) -> None:
    """With a limit of zero: using up a thousand million transactions takes days."""
    query = load_queries("audit")["transaction_ids_near_their_end"].replace("1000000000", "-1")
    rows = await fetch_dicts(auditor, query, {"limit": 20})
    assert {"template1", "postgres"} <= {row["database_name"] for row in rows}
    assert all(0 < row["transactions"] < 10**9 for row in rows)


async def test_a_primary_that_takes_no_writes(seed: Seed) -> None:
    await seed.connection.execute("SET default_transaction_read_only = on")
    assert await broken(seed.connection) == {"primary_that_takes_no_writes"}
