"""Guards of the database, tested as the superuser who owns the tables. Grants do not stop a superuser, so each
rejection below comes from a trigger, a check or an index."""

import itertools
from typing import Any, LiteralString

import pytest
from psycopg import errors, sql

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.saga import JOB_MOVES, SAGA_MOVES, JobStatus, SagaStatus
from tests.conftest import Connect
from tests.database.bulk_rows import requeue_of, started
from tests.database.seed import Seed
from tests.faults.promises import Promise

REFUSED = "HS001"

SAGA_PAIRS = list(itertools.product(SagaStatus, SagaStatus))
JOB_PAIRS = list(itertools.product(JobStatus, JobStatus))


async def refusal(
    connection: Connection, statement: LiteralString | sql.Composed, params: Any = ()
) -> str | None:
    """The SQLSTATE that refused the statement, or None when it was carried out."""
    try:
        await connection.execute(statement, params)
    except errors.Error as error:
        return error.sqlstate
    return None


def is_legal(moves: dict[Any, frozenset[Any]], old: Any, new: Any) -> bool:
    """A row that is not at its end may stay where it is; a Leased job may not, because a lease is not renewed."""
    return new in moves[old] or (old is new and bool(moves[old]) and old is not JobStatus.LEASED)


@pytest.mark.guarantee(Promise.GUARDED, "every pair of saga states", "legal ones taken, all others refused")
@pytest.mark.parametrize(("old", "new"), SAGA_PAIRS)
async def test_sagas_move_as_the_table_says_and_not_otherwise(
    seed: Seed, old: SagaStatus, new: SagaStatus
) -> None:
    saga_id = await seed.saga(old)
    counts_a_result = int(old is SagaStatus.IN_PROGRESS and new is not SagaStatus.IN_PROGRESS)
    state = await refusal(
        seed.connection,
        "UPDATE webhook_delivery_sagas SET status = %s, attempt_count = attempt_count + %s,"
        " next_attempt_at = next_attempt_at + %s::interval WHERE id = %s",
        [new, counts_a_result, "1 s" if new is SagaStatus.PENDING_RETRY else "0", saga_id],
    )
    assert state == (None if is_legal(SAGA_MOVES, old, new) else REFUSED)
    assert await seed.status_of(saga_id) == (new if state is None else old)


async def job_in(seed: Seed, status: JobStatus) -> int:
    job_id = await seed.job()
    if status is JobStatus.LEASED:
        await seed.claim(job_id)
    elif status is not JobStatus.PENDING:
        await seed.finish(job_id, None if status is JobStatus.COMPLETED else "http_503")
    return job_id


@pytest.mark.guarantee(Promise.GUARDED, "every pair of job states", "legal ones taken, all others refused")
@pytest.mark.parametrize(("old", "new"), JOB_PAIRS)
async def test_jobs_move_as_the_table_says_and_not_otherwise(
    seed: Seed, old: JobStatus, new: JobStatus
) -> None:
    job_id = await job_in(seed, old)
    whole: dict[JobStatus, LiteralString] = {
        JobStatus.PENDING: ", lease_until = NULL",
        JobStatus.LEASED: ", worker_id = 'w', lease_until = now(), claim_count = claim_count"
        " + CASE WHEN status = 'Pending' THEN 1 ELSE 0 END",
        JobStatus.COMPLETED: ", lease_until = NULL, response_status = 200",
        JobStatus.FAILED: ", lease_until = NULL, error_code = 'http_503'",
    }
    statement = sql.SQL("UPDATE webhook_delivery_jobs SET status = %s{} WHERE id = %s").format(
        sql.SQL(whole[new])
    )
    state = await refusal(seed.connection, statement, [new, job_id])
    assert state == (None if is_legal(JOB_MOVES, old, new) else REFUSED)


IMMUTABLE: list[tuple[str, LiteralString]] = [
    ("events", "UPDATE events SET event_type = 'other'"),
    ("events", "UPDATE events SET payload = '{}'"),
    ("events", "DELETE FROM events"),
    ("events", "TRUNCATE events CASCADE"),
    ("dead_letters", "UPDATE dead_letters SET final_error_code = 'other'"),
    ("dead_letters", "UPDATE dead_letters SET payload_snapshot = '{}'"),
    ("dead_letters", "DELETE FROM dead_letters"),
    ("dead_letters", "TRUNCATE dead_letters CASCADE"),
    ("webhook_delivery_sagas", "DELETE FROM webhook_delivery_sagas"),
    ("webhook_delivery_sagas", "TRUNCATE webhook_delivery_sagas CASCADE"),
    ("webhook_delivery_jobs", "DELETE FROM webhook_delivery_jobs"),
    ("webhook_delivery_jobs", "TRUNCATE webhook_delivery_jobs"),
    ("subscriptions", "DELETE FROM subscriptions"),
    ("subscriptions", "TRUNCATE subscriptions CASCADE"),
    ("subscription_history", "UPDATE subscription_history SET active = false"),
    ("subscription_history", "DELETE FROM subscription_history"),
    ("subscription_history", "TRUNCATE subscription_history"),
    ("routing_decisions", "UPDATE routing_decisions SET sagas_started = 0"),
    ("routing_decisions", "DELETE FROM routing_decisions"),
    ("routing_decisions", "TRUNCATE routing_decisions"),
    ("routing_decisions", "UPDATE routing_decisions_of_later_parts SET sagas_started = 0"),
    ("routing_decisions", "DELETE FROM routing_decisions_of_later_parts"),
    ("routing_decisions", "TRUNCATE routing_decisions_of_later_parts"),
]


@pytest.mark.guarantee(Promise.GUARDED, "UPDATE, DELETE and TRUNCATE of history")
@pytest.mark.parametrize(("table", "statement"), IMMUTABLE)
async def test_history_is_neither_changed_nor_removed(
    seed: Seed, table: LiteralString, statement: LiteralString
) -> None:
    await seed.dead_letter()
    everything = sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))
    before = await (await seed.connection.execute(everything)).fetchall()
    assert await refusal(seed.connection, statement) == REFUSED
    assert await (await seed.connection.execute(everything)).fetchall() == before


async def test_only_the_retention_role_deletes_sagas_and_jobs(seed: Seed) -> None:
    await seed.make_old(await seed.saga(SagaStatus.COMPLETED))
    async with seed.connection.transaction():
        await seed.connection.execute("SET LOCAL ROLE retention_operator")
        await seed.connection.execute("DELETE FROM webhook_delivery_jobs")
        await seed.connection.execute("DELETE FROM webhook_delivery_sagas")
    assert await seed.value("SELECT count(*) FROM webhook_delivery_sagas") == 0


@pytest.mark.guarantee(Promise.GUARDED, "a change to a saga that has ended")
@pytest.mark.parametrize("end", [SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED])
@pytest.mark.parametrize(
    "change",
    [
        "attempt_count = attempt_count + 1",
        "attempt_count = attempt_count",
        "next_attempt_at = now()",
        "final_error_code = 'other'",
        "updated_at = now()",
        "requeued_from = NULL",
        "created_at = now()",
    ],
)
async def test_an_ended_saga_never_changes(seed: Seed, end: SagaStatus, change: LiteralString) -> None:
    saga_id = await seed.saga(end)
    statement = sql.SQL("UPDATE webhook_delivery_sagas SET {} WHERE id = %s").format(sql.SQL(change))
    assert await refusal(seed.connection, statement, [saga_id]) == REFUSED


@pytest.mark.guarantee(Promise.GUARDED, "an attempt counted without a result, or another pair")
@pytest.mark.parametrize(
    ("status", "change"),
    [
        (SagaStatus.PENDING, "attempt_count = 1"),
        (SagaStatus.PENDING, "status = 'InProgress', attempt_count = 1"),
        (SagaStatus.IN_PROGRESS, "attempt_count = 1"),
        (SagaStatus.IN_PROGRESS, "status = 'Completed'"),
        (SagaStatus.IN_PROGRESS, "status = 'DeadLettered'"),
        (SagaStatus.IN_PROGRESS, "status = 'PendingRetry', attempt_count = 2"),
        (SagaStatus.IN_PROGRESS, "status = 'PendingRetry', attempt_count = attempt_count - 1"),
        (SagaStatus.PENDING_RETRY, "attempt_count = 0"),
        (SagaStatus.PENDING_RETRY, "status = 'DeadLettered', attempt_count = 2"),
        (SagaStatus.PENDING, "event_id = event_id + 1"),
        (SagaStatus.PENDING, "subscription_id = subscription_id + 1"),
        (SagaStatus.PENDING, "created_at = now() - interval '1 day'"),
        (SagaStatus.PENDING, "requeued_from = 1"),
        (SagaStatus.PENDING, "ordering_key = 'other'"),
    ],
)
async def test_attempts_count_results_only_and_the_pair_never_changes(
    seed: Seed, status: SagaStatus, change: LiteralString
) -> None:
    saga_id = await seed.saga(status)
    statement = sql.SQL("UPDATE webhook_delivery_sagas SET {} WHERE id = %s").format(sql.SQL(change))
    assert await refusal(seed.connection, statement, [saga_id]) == REFUSED


@pytest.mark.parametrize(
    ("column", "value"),
    [("status", "Completed"), ("status", "InProgress"), ("attempt_count", 1), ("final_error_code", "x")],
)
async def test_a_saga_starts_pending_and_untried(seed: Seed, column: str, value: Any) -> None:
    subscription_id = await seed.subscription()
    event_id = await seed.event_for(subscription_id)
    statement = sql.SQL(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, {}) VALUES (%s, %s, %s)"
    ).format(sql.Identifier(column))
    assert await refusal(seed.connection, statement, [event_id, subscription_id, value]) == REFUSED


async def test_routing_one_pair_twice_is_one_saga_but_a_requeue_repeats_the_pair(seed: Seed) -> None:
    dead_letter_id = await seed.dead_letter()
    repeat: LiteralString = (
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from)"
        " SELECT event_id, subscription_id, %s FROM dead_letters"
    )
    assert await refusal(seed.connection, repeat, [None]) == errors.UniqueViolation.sqlstate
    assert await refusal(seed.connection, repeat, [dead_letter_id]) is None
    assert await refusal(seed.connection, repeat, [dead_letter_id]) == errors.UniqueViolation.sqlstate


NEW_JOB: LiteralString = (
    "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
    " SELECT id, subscription_id, attempt_count + 1, next_attempt_at + %s * interval '1 second'"
    " FROM webhook_delivery_sagas WHERE id = %s"
)


@pytest.mark.guarantee(Promise.GUARDED, "a job for a saga that has ended")
@pytest.mark.parametrize("end", [SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED])
async def test_an_ended_saga_gets_no_job(seed: Seed, end: SagaStatus) -> None:
    saga_id = await seed.saga(end)
    assert await refusal(seed.connection, NEW_JOB, [7, saga_id]) == REFUSED


@pytest.mark.guarantee(Promise.GUARDED, "a job for a saga that ends in the same moment")
async def test_a_saga_that_is_ending_at_this_moment_gets_no_job(connect: Connect, seed: Seed) -> None:
    saga_id = await seed.saga()
    other = await connect(Role.OWNER)
    async with seed.connection.transaction():
        await seed.connection.execute(
            "UPDATE webhook_delivery_sagas SET status = 'DeadLettered' WHERE id = %s", [saga_id]
        )
        await other.execute("SET lock_timeout = '300ms'")
        state = await refusal(other, NEW_JOB, [0, saga_id])
    assert state == errors.LockNotAvailable.sqlstate  # it waits for the end, instead of passing it by


@pytest.mark.guarantee(Promise.GUARDED, "a second job beside an active one")
@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.LEASED])
async def test_a_second_active_job_is_refused(seed: Seed, status: JobStatus) -> None:
    job_id = await job_in(seed, status)
    saga_id = await seed.value("SELECT saga_id FROM webhook_delivery_jobs WHERE id = %s", [job_id])
    with pytest.raises(errors.UniqueViolation, match="uniq_job_saga_active"):
        await seed.connection.execute(NEW_JOB, [7, saga_id])


async def test_a_second_job_for_one_attempt_is_refused_even_when_the_first_has_ended(seed: Seed) -> None:
    job_id = await job_in(seed, JobStatus.FAILED)
    saga_id = await seed.value("SELECT saga_id FROM webhook_delivery_jobs WHERE id = %s", [job_id])
    with pytest.raises(errors.UniqueViolation, match="uniq_job_saga_attempt"):
        await seed.connection.execute(NEW_JOB, [0, saga_id])


async def test_a_job_never_carries_another_subscription_than_its_saga(seed: Seed) -> None:
    saga_id = await seed.saga()
    other = await seed.subscription()
    state = await refusal(
        seed.connection,
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
        " VALUES (%s, %s, 1, now())",
        [saga_id, other],
    )
    assert state == REFUSED


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", "Completed"),
        ("claim_count", 1),
        ("lost_leases", 1),
        ("worker_id", "w"),
        ("lease_until", "now"),
        ("finished_at", "now"),
    ],
)
async def test_a_job_starts_pending_and_unclaimed(seed: Seed, column: str, value: Any) -> None:
    saga_id = await seed.saga()
    statement = sql.SQL(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, {})"
        " SELECT id, subscription_id, 1, now(), %s FROM webhook_delivery_sagas WHERE id = %s"
    ).format(sql.Identifier(column))
    assert await refusal(seed.connection, statement, [value, saga_id]) == REFUSED


JOB_COLUMNS: list[tuple[LiteralString, LiteralString]] = [
    ("saga_id", "saga_id + 1"),
    ("subscription_id", "subscription_id + 1"),
    ("attempt_number", "attempt_number + 1"),
    ("attempt_at", "now()"),
    ("created_at", "now() - interval '1 day'"),
    ("lease_until", "now()"),
    ("response_status", "999"),
    ("error_code", "'other'"),
    ("worker_id", "'other'"),
    ("claim_count", "claim_count + 1"),
    ("lost_leases", "lost_leases + 1"),
    ("dispatched_at", "now()"),
    ("leased_at", "now()"),
    ("finished_at", "now()"),
    ("duration_ms", "999"),
    ("response_body", "'other'"),
    ("response_truncated", "NOT response_truncated"),
    ("retry_after_seconds", "999"),
    ("resolved_ip", "'192.0.2.1'"),
    ("reconnected", "NOT reconnected"),
    ("max_attempts", "99"),
    ("response_headers", "'x-other: 1'"),
    ("own_header_names", "'x-other'"),
    ("sent_format", "'cloudevents-binary'"),
    ("slow", "NOT slow"),
    ("erased", "NOT erased"),
]


@pytest.mark.guarantee(Promise.GUARDED, "a change to a finished job, column by column")
@pytest.mark.parametrize(("column", "value"), JOB_COLUMNS)
async def test_a_finished_job_never_changes(seed: Seed, column: LiteralString, value: LiteralString) -> None:
    job_id = await job_in(seed, JobStatus.FAILED)
    statement = sql.SQL("UPDATE webhook_delivery_jobs SET {} = {} WHERE id = %s").format(
        sql.Identifier(column), sql.SQL(value)
    )
    assert await refusal(seed.connection, statement, [job_id]) == REFUSED


async def test_every_column_of_a_finished_job_is_guarded(seed: Seed) -> None:
    columns = await seed.rows(
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'webhook_delivery_jobs'"
    )
    tried = {column for column, _ in JOB_COLUMNS} | {"id", "status"}
    assert {row["column_name"] for row in columns} == tried


@pytest.mark.guarantee(Promise.GUARDED, "an event at a moment that no program can hold")
@pytest.mark.parametrize(
    ("created_at", "state"),
    [
        ("infinity", "23514"),
        ("-infinity", "23514"),
        ("57041-06-07 00:00Z", "23514"),  # milliseconds taken for seconds
        ("0044-03-15 00:00Z BC", "23514"),
        ("0001-01-02 00:00Z", None),
        ("9999-12-30 23:59:59.999999Z", None),
    ],
)
async def test_an_event_is_at_a_moment_that_every_stage_can_read(
    seed: Seed, created_at: str, state: str | None
) -> None:
    """Producers that write events in their own transaction may say when they were."""
    insert: LiteralString = "INSERT INTO events (event_type, payload, created_at) VALUES (%s, '{}', %s)"
    assert await refusal(seed.connection, insert, ["guards.moment", created_at]) == state


@pytest.mark.guarantee(
    Promise.GUARDED, "a saga of an event, a subscription or a dead letter that does not exist"
)
@pytest.mark.parametrize("missing", ["event_id", "subscription_id", "requeued_from"])
async def test_a_saga_names_what_is_there(seed: Seed, missing: str) -> None:
    """By a trigger: a foreign key would wait for whoever has locked the parent."""
    dead_letter_id = await seed.dead_letter()
    named = await seed.row(
        "SELECT event_id, subscription_id, id AS requeued_from FROM dead_letters WHERE id = %s",
        [dead_letter_id],
    )
    insert: LiteralString = (
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from)"
        " VALUES (%(event_id)s, %(subscription_id)s, %(requeued_from)s)"
    )
    assert await refusal(seed.connection, insert, {**named, missing: 1_000_000}) == "23503"
    assert await refusal(seed.connection, insert, named) is None


async def test_a_dead_letter_tells_the_event_and_subscription_of_its_saga(seed: Seed) -> None:
    await seed.dead_letter()
    (saga,) = await seed.rows("SELECT saga_id, event_id FROM dead_letters")
    await seed.rewrite("DELETE FROM dead_letters")
    insert: LiteralString = (
        "INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, payload_snapshot)"
        " SELECT %s, %s, 1000000, tenant_id, event_type, payload FROM events WHERE id = %s"
    )
    assert (
        await refusal(seed.connection, insert, [saga["saga_id"], saga["event_id"], saga["event_id"]])
        == REFUSED
    )


async def test_a_lane_names_what_is_there(seed: Seed) -> None:
    operation = await started(seed.connection, requeue_of())
    insert: LiteralString = (
        "INSERT INTO bulk_operation_lanes (operation_id, subscription_id, matched) VALUES (%s, %s, 0)"
    )
    assert await refusal(seed.connection, insert, [operation.id, 1_000_000]) == "23503"
    assert await refusal(seed.connection, insert, [operation.id, await seed.subscription()]) is None


@pytest.mark.guarantee(Promise.GUARDED, "an attempt under another time than its saga's next one")
async def test_a_job_is_the_next_attempt_of_its_saga(seed: Seed) -> None:
    saga_id = await seed.saga()
    insert: LiteralString = (
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
        " SELECT id, subscription_id, 1, next_attempt_at + %s::interval FROM webhook_delivery_sagas WHERE id = %s"
    )
    assert await refusal(seed.connection, insert, ["1 microsecond", saga_id]) == REFUSED
    assert await refusal(seed.connection, insert, ["0", saga_id]) is None


@pytest.mark.guarantee(Promise.GUARDED, "a result applied to another attempt")
async def test_the_time_of_an_attempt_names_it_until_its_result_is_applied(seed: Seed) -> None:
    """What is applied moves the saga on, so a result cannot be applied twice (decision 109)."""
    saga_id = await seed.saga(SagaStatus.IN_PROGRESS)
    move: LiteralString = (
        "UPDATE webhook_delivery_sagas SET status = %s, next_attempt_at = next_attempt_at + %s::interval"
        " WHERE id = %s"
    )
    assert await refusal(seed.connection, move, ["InProgress", "1 s", saga_id]) == REFUSED
    assert await refusal(seed.connection, move, ["PendingRetry", "0", saga_id]) == REFUSED
    assert await refusal(seed.connection, move, ["PendingRetry", "1 s", saga_id]) is None
    assert await refusal(seed.connection, move, ["InProgress", "1 s", saga_id]) == REFUSED
    assert await refusal(seed.connection, move, ["InProgress", "0", saga_id]) is None


@pytest.mark.parametrize(
    ("status", "change"),
    [
        (JobStatus.PENDING, "status = 'Leased', worker_id = 'w', lease_until = now()"),
        (
            JobStatus.PENDING,
            "status = 'Leased', worker_id = 'w', lease_until = now(), claim_count = claim_count + 2",
        ),
        (JobStatus.PENDING, "status = 'Leased', worker_id = 'w', claim_count = claim_count + 1"),
        (JobStatus.PENDING, "status = 'Leased', lease_until = now(), claim_count = claim_count + 1"),
        (JobStatus.LEASED, "lease_until = now() + interval '1 hour'"),
        (JobStatus.LEASED, "worker_id = 'thief'"),
        (JobStatus.LEASED, "status = 'Completed', lease_until = NULL"),
        (JobStatus.LEASED, "status = 'Failed', lease_until = NULL"),
        (JobStatus.LEASED, "status = 'Completed', response_status = 200"),
        (JobStatus.LEASED, "status = 'Pending'"),
        (JobStatus.LEASED, "status = 'Pending', lease_until = NULL, claim_count = 0"),
        (JobStatus.PENDING, "lost_leases = lost_leases + 1"),
        (JobStatus.PENDING, "lease_until = now()"),
        (JobStatus.LEASED, "status = 'Pending', lease_until = NULL, lost_leases = lost_leases + 2"),
        (JobStatus.LEASED, "status = 'Pending', lease_until = NULL, lost_leases = -1"),
        (
            JobStatus.LEASED,
            "status = 'Completed', lease_until = NULL, response_status = 200, lost_leases = lost_leases + 1",
        ),
    ],
)
async def test_claims_and_results_are_whole(seed: Seed, status: JobStatus, change: LiteralString) -> None:
    job_id = await job_in(seed, status)
    statement = sql.SQL("UPDATE webhook_delivery_jobs SET {} WHERE id = %s").format(sql.SQL(change))
    assert await refusal(seed.connection, statement, [job_id]) == REFUSED


@pytest.mark.guarantee(Promise.GUARDED, "a callback URL that is not https")
@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.example/",
        "HTTPS://receiver.example/",
        "https:/receiver.example",
        "https://",
        "",
        "javascript:alert(1)//https://",
    ],
)
@pytest.mark.parametrize("column", ["callback_url", "pending_callback_url"])
async def test_a_callback_url_is_https(seed: Seed, column: LiteralString, url: str) -> None:
    await seed.subscription(verified=False)
    statement = sql.SQL("UPDATE subscriptions SET {} = %s").format(sql.Identifier(column))
    with pytest.raises(errors.CheckViolation, match="url_is_https"):
        await seed.connection.execute(statement, [url])


async def test_a_callback_url_has_500_characters_at_the_most(seed: Seed) -> None:
    await seed.subscription(verified=False)
    change: LiteralString = "UPDATE subscriptions SET callback_url = 'https://' || repeat('a', %s)"
    assert await refusal(seed.connection, change, [492]) is None
    assert await refusal(seed.connection, change, [493]) == errors.StringDataRightTruncation.sqlstate


async def test_a_verified_address_is_replaced_by_its_pending_one_only(seed: Seed) -> None:
    subscription_id = await seed.subscription()
    change: LiteralString = "UPDATE subscriptions SET callback_url = %s WHERE id = %s"
    assert await refusal(seed.connection, change, ["https://new.example/", subscription_id]) == REFUSED
    await seed.connection.execute(
        "UPDATE subscriptions SET pending_callback_url = 'https://new.example/' WHERE id = %s",
        [subscription_id],
    )
    assert await refusal(seed.connection, change, ["https://other.example/", subscription_id]) == REFUSED
    assert await refusal(seed.connection, change, ["https://new.example/", subscription_id]) is None


async def test_verifying_and_changing_the_address_in_one_step_is_refused(seed: Seed) -> None:
    subscription_id = await seed.subscription(verified=False)
    state = await refusal(
        seed.connection,
        "UPDATE subscriptions SET callback_url = 'https://new.example/', verified = true WHERE id = %s",
        [subscription_id],
    )
    assert state == REFUSED


@pytest.mark.guarantee(Promise.GUARDED, "a dead letter that is not true")
@pytest.mark.parametrize(
    "lie",
    [
        {"event_id": "(SELECT max(id) FROM events)"},
        {"subscription_id": "(SELECT max(id) FROM subscriptions)"},
        {"tenant_id": "'other'"},
        {"event_type": "'other'"},
        {"payload": "'{ \"n\": 1}'::json"},
        {"payload": "'{}'::json"},
    ],
)
async def test_a_dead_letter_tells_the_truth(seed: Seed, lie: dict[LiteralString, LiteralString]) -> None:
    saga_id = await seed.saga()
    await seed.saga()
    await seed.connection.execute(
        "UPDATE webhook_delivery_sagas SET status = 'DeadLettered' WHERE id = %s", [saga_id]
    )
    assert await refusal_of_dead_letter(seed, saga_id, lie) == REFUSED
    assert await refusal_of_dead_letter(seed, saga_id, {}) is None
    assert await refusal_of_dead_letter(seed, saga_id, {}) == errors.UniqueViolation.sqlstate


@pytest.mark.parametrize("status", [status for status in SagaStatus if status != "DeadLettered"])
async def test_a_dead_letter_is_of_a_dead_saga(seed: Seed, status: SagaStatus) -> None:
    assert await refusal_of_dead_letter(seed, await seed.saga(status), {}) == REFUSED


DEAD_LETTER_COLUMNS: dict[LiteralString, LiteralString] = {
    "event_id": "s.event_id",
    "subscription_id": "s.subscription_id",
    "tenant_id": "e.tenant_id",
    "event_type": "e.event_type",
    "payload": "e.payload",
}


async def refusal_of_dead_letter(
    seed: Seed, saga_id: int, lie: dict[LiteralString, LiteralString]
) -> str | None:
    statement = sql.SQL(
        "INSERT INTO dead_letters"
        " (saga_id, event_id, subscription_id, tenant_id, event_type, payload_snapshot)"
        " SELECT s.id, {} FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id WHERE s.id = %s"
    ).format(sql.SQL(", ").join(sql.SQL(lie.get(name, true)) for name, true in DEAD_LETTER_COLUMNS.items()))
    return await refusal(seed.connection, statement, [saga_id])
