"""Each role logs in and tries what it may not do; only a missing privilege counts as the refusal.

The statements that each role must not run come first. The positive
control at the end runs the real stages as the real roles: a role that could do nothing would pass all the rest.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, DatabaseAddress, Role
from hooksaga.adapters.database_login import role_conninfo
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.endpoint_health import HealthPolicy
from hooksaga.core.event_input import EventDraft
from hooksaga.core.models import NewSubscription, SubscriptionChange
from hooksaga.core.saga import SagaStatus
from hooksaga.operations import api_keys, inspect, requeue, subscriptions, verify_subscription
from hooksaga.operations.audit import audit
from hooksaga.operations.explain import explain_event
from hooksaga.operations.list_dead_letters import list_dead_letters
from hooksaga.operations.requeue import DeadLetterFilter
from hooksaga.operations.watch_endpoints import STEPS
from hooksaga.stages import deliver
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from hooksaga.stages.clean_leases import clean_leases
from hooksaga.stages.job_rows import AttemptResult
from hooksaga.stages.route_events import route_events
from tests.conftest import Connect
from tests.database import orchestrate
from tests.database.passing_time import pass_time
from tests.database.seed import LAST_ATTEMPT, POLICY, Seed, outcome

FUNCTION_ROLES = [role for role in Role if role is not Role.OWNER]

INSERT_EVENT = "INSERT INTO events (event_type, payload) VALUES ('a', '{}')"
INSERT_SUBSCRIPTION = (
    "INSERT INTO subscriptions (event_types, callback_url) VALUES ('{a}', 'https://a.example')"
)
INSERT_SAGA = "INSERT INTO webhook_delivery_sagas (event_id, subscription_id) VALUES (1, 1)"
INSERT_JOB = (
    "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at)"
    " VALUES (1, 1, 1, now())"
)
INSERT_FINISHED_JOB = (
    "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_number, attempt_at, status)"
    " VALUES (1, 1, 1, now(), 'Completed')"
)
INSERT_DEAD_LETTER = (
    "INSERT INTO dead_letters (saga_id, event_id, subscription_id, tenant_id, event_type, payload_snapshot)"
    " VALUES (1, 1, 1, 'default', 'a', '{}')"
)

INSERT_DECISION = (
    "INSERT INTO routing_decisions (event_id, newest_change, snapshot, sagas_started) SELECT 1, 0, '1:1:', 0"
)
INSERT_HISTORY = (
    "INSERT INTO subscription_history (subscription_id, tenant_id, event_types, active, verified)"
    " VALUES (1, 'default', '{a}', true, true)"
)

DENIED: dict[Role, list[str]] = {
    Role.INGEST: [
        "UPDATE events SET event_type = 'b'",
        "DELETE FROM events",
        INSERT_SAGA,
        "UPDATE webhook_delivery_sagas SET status = 'Completed'",
        "DELETE FROM webhook_delivery_sagas",
        INSERT_JOB,
        "UPDATE webhook_delivery_jobs SET status = 'Leased'",
        "DELETE FROM webhook_delivery_jobs",
        INSERT_DEAD_LETTER,
        "UPDATE dead_letters SET final_error_code = 'x'",
        "DELETE FROM dead_letters",
        "INSERT INTO events (event_type, payload, created_at) VALUES ('a', '{}', '2020-01-01')",
        "INSERT INTO routing_outbox (event_id, created_at) VALUES (1, now())",
        "DELETE FROM routing_outbox",
        "SELECT callback_url FROM subscriptions",
        "SELECT headers FROM subscriptions",
        INSERT_SUBSCRIPTION,
        "UPDATE subscriptions SET active = false",
        "SELECT final_error_code FROM webhook_delivery_sagas",
        "SELECT id FROM webhook_delivery_jobs",
        "SELECT id FROM dead_letters",
    ],
    Role.ROUTER: [
        INSERT_JOB,
        "UPDATE webhook_delivery_sagas SET status = 'InProgress'",
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now()",
        "DELETE FROM webhook_delivery_sagas",
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status) VALUES (1, 1, 'Completed')",
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from) VALUES (1, 1, 1)",
        "SELECT status FROM webhook_delivery_sagas",
        "SELECT event_id FROM routing_decisions",
        (
            "INSERT INTO routing_decisions (event_id, routed_at, newest_change, snapshot, sagas_started)"
            " VALUES (1, now(), 0, '1:1:', 0)"
        ),
        "SELECT payload FROM events",
        "SELECT * FROM events",
        "SELECT external_id FROM events",
        INSERT_EVENT,
        "UPDATE events SET event_type = 'b'",
        "DELETE FROM events",
        "UPDATE subscriptions SET active = false",
        INSERT_SUBSCRIPTION,
        "SELECT callback_url FROM subscriptions",
        "INSERT INTO routing_outbox (event_id, created_at) VALUES (1, now())",
        "SELECT id FROM webhook_delivery_jobs",
        "SELECT id FROM dead_letters",
        INSERT_DEAD_LETTER,
    ],
    Role.ORCHESTRATOR: [
        "DELETE FROM webhook_delivery_sagas",
        INSERT_EVENT,
        "UPDATE events SET event_type = 'b'",
        "DELETE FROM events",
        INSERT_SUBSCRIPTION,
        "UPDATE subscriptions SET active = false",
        "DELETE FROM subscriptions",
        INSERT_SAGA,
        "UPDATE webhook_delivery_sagas SET event_id = 2",
        "UPDATE webhook_delivery_sagas SET subscription_id = 2",
        "UPDATE webhook_delivery_sagas SET requeued_from = 2",
        "UPDATE webhook_delivery_jobs SET status = 'Pending'",
        "UPDATE webhook_delivery_jobs SET lease_until = now()",
        "UPDATE webhook_delivery_jobs SET error_code = 'x'",
        INSERT_FINISHED_JOB,
        "DELETE FROM webhook_delivery_jobs",
        "UPDATE dead_letters SET final_error_code = 'x'",
        "DELETE FROM dead_letters",
        "SELECT event_id FROM routing_outbox",
        "SELECT headers FROM subscriptions",
        "SELECT s FROM subscriptions s",
    ],
    Role.DELIVERY: [
        INSERT_SAGA,
        "DELETE FROM webhook_delivery_sagas",
        INSERT_DEAD_LETTER,
        "UPDATE dead_letters SET final_error_code = 'x'",
        "DELETE FROM dead_letters",
        "UPDATE webhook_delivery_sagas SET status = 'Completed'",
        "UPDATE webhook_delivery_sagas SET attempt_count = attempt_count + 1",
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now()",
        "SELECT id FROM webhook_delivery_sagas FOR UPDATE",
        INSERT_JOB,
        "DELETE FROM webhook_delivery_jobs",
        "UPDATE webhook_delivery_jobs SET dispatched_at = now()",
        "UPDATE webhook_delivery_jobs SET saga_id = 2",
        "UPDATE webhook_delivery_jobs SET attempt_number = 2",
        "UPDATE webhook_delivery_jobs SET attempt_at = now()",
        INSERT_EVENT,
        "UPDATE events SET event_type = 'b'",
        INSERT_SUBSCRIPTION,
        "UPDATE subscriptions SET verified = true",
        "UPDATE subscription_secrets SET secret = 'x'",
        "INSERT INTO subscription_secrets (subscription_id, secret) VALUES (1, 'x')",
        "DELETE FROM subscription_secrets",
        "SELECT event_id FROM routing_outbox",
    ],
    Role.LEASE_CLEANER: [
        INSERT_JOB,
        "DELETE FROM webhook_delivery_jobs",
        "UPDATE webhook_delivery_jobs SET claim_count = 0",
        "UPDATE webhook_delivery_jobs SET worker_id = 'me'",
        "UPDATE webhook_delivery_jobs SET response_status = 200",
        "SELECT final_error_code FROM webhook_delivery_sagas",
        "UPDATE webhook_delivery_sagas SET status = 'Completed'",
        "SELECT id FROM events",
        "SELECT id FROM subscriptions",
        "SELECT id FROM dead_letters",
    ],
    Role.HEALTH_MONITOR: [
        "DELETE FROM subscriptions",
        "UPDATE subscriptions SET verified = true",
        "UPDATE subscriptions SET callback_url = 'https://a.example'",
        "UPDATE subscriptions SET deleted_at = now()",
        "SELECT headers FROM subscriptions",
        INSERT_SUBSCRIPTION,
        INSERT_SAGA,
        "UPDATE webhook_delivery_sagas SET status = 'DeadLettered'",
        "SELECT status FROM webhook_delivery_sagas",
        INSERT_JOB,
        "UPDATE webhook_delivery_jobs SET error_code = 'x'",
        "SELECT response_body FROM webhook_delivery_jobs",
        "SELECT resolved_ip FROM webhook_delivery_jobs",
        "DELETE FROM webhook_delivery_jobs",
        INSERT_DEAD_LETTER,
        "SELECT payload_snapshot FROM dead_letters",
        "DELETE FROM dead_letters",
        "SELECT payload FROM events",
        "UPDATE events SET event_type = 'b'",
        "DELETE FROM events",
        "INSERT INTO events (event_type, payload, created_at) VALUES ('hooksaga.a', '{}', '2020-01-01')",
        "SELECT event_id FROM routing_outbox",
        "INSERT INTO operational_outbox (dead_letter_id) VALUES (1)",
        "INSERT INTO subscription_health (subscription_id) VALUES (1)",
        "UPDATE subscription_health SET watched_since = '2020-01-01'",
        "DELETE FROM subscription_health",
        "DELETE FROM subscription_health_mark",
    ],
    Role.SUBSCRIPTIONS: [
        "DELETE FROM subscriptions",
        "SELECT id FROM events",
        INSERT_EVENT,
        "SELECT final_error_code FROM webhook_delivery_sagas",
        INSERT_SAGA,
        "SELECT id FROM webhook_delivery_jobs",
        INSERT_JOB,
        "SELECT id FROM dead_letters",
        "SELECT event_id FROM routing_outbox",
    ],
    Role.ADMIN: [
        "SELECT headers FROM subscriptions",
        "SELECT s FROM subscriptions s",
        "UPDATE webhook_delivery_sagas SET status = 'Pending'",
        "DELETE FROM webhook_delivery_sagas",
        "UPDATE events SET event_type = 'b'",
        "UPDATE subscriptions SET active = true",
        INSERT_SAGA,
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, requeued_from) VALUES (1, 1, 1)",
        INSERT_EVENT,
        "DELETE FROM events",
        INSERT_SUBSCRIPTION,
        "DELETE FROM subscriptions",
        INSERT_JOB,
        "UPDATE webhook_delivery_jobs SET status = 'Pending'",
        "DELETE FROM webhook_delivery_jobs",
        INSERT_DEAD_LETTER,
        "UPDATE dead_letters SET final_error_code = 'x'",
        "DELETE FROM dead_letters",
        "DELETE FROM routing_outbox",
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, bulk_operation_id) VALUES (1, 1, 1)",
        "INSERT INTO bulk_operations (kind, filter, created_by, until_id) VALUES ('requeue', '{}', 'me', 1)",
        "UPDATE bulk_operations SET rate_per_second = 1000",
        "UPDATE bulk_operations SET status = 'Completed'",
        "SELECT id FROM bulk_operations FOR UPDATE",
        "UPDATE bulk_operation_lanes SET after_id = 0",
        "SELECT find_bulk_candidates(o, 1, now(), 1, 1) FROM bulk_operations o",
    ],
}

DENIED[Role.RETENTION] = [
    "SELECT id FROM events",
    "DELETE FROM events",
    "UPDATE events SET payload = NULL, removed_at = now()",
    "SELECT payload_snapshot FROM dead_letters",
    "DELETE FROM dead_letters",
    "DELETE FROM webhook_delivery_sagas",
    "DELETE FROM webhook_delivery_jobs",
    "SELECT response_body FROM webhook_delivery_jobs",
    "DELETE FROM routing_decisions",
    "UPDATE retention_progress SET looked_at = now()",
    "DELETE FROM retention_days",
    "UPDATE erasures SET status = 'Completed'",
    "SELECT erase_events(1, '{1}')",
    "SELECT id FROM subscriptions",
    INSERT_EVENT,
    INSERT_SAGA,
    INSERT_JOB,
    INSERT_DEAD_LETTER,
]

DENIED[Role.OBSERVER] = [
    "SELECT id FROM events",
    "SELECT payload FROM events",
    "SELECT event_id FROM routing_outbox",
    "SELECT id FROM subscriptions",
    "SELECT headers FROM subscriptions",
    "SELECT final_error_code FROM webhook_delivery_sagas",
    "SELECT id FROM webhook_delivery_jobs",
    "SELECT response_body FROM webhook_delivery_jobs",
    "SELECT id FROM dead_letters",
    INSERT_EVENT,
    INSERT_SUBSCRIPTION,
    INSERT_SAGA,
    INSERT_JOB,
    INSERT_DEAD_LETTER,
    "DELETE FROM routing_outbox",
    "UPDATE webhook_delivery_sagas SET status = 'Completed'",
    "UPDATE webhook_delivery_jobs SET status = 'Leased'",
    "CREATE VIEW mine AS SELECT 1",
    "CREATE OR REPLACE VIEW outbox_age AS SELECT 1",
]

DENIED_TO_ALL = [
    INSERT_HISTORY,
    "UPDATE subscription_history SET active = true",
    "DELETE FROM subscription_history",
    "UPDATE routing_decisions SET sagas_started = 0",
    "DELETE FROM routing_decisions",
    "SELECT key_sha256 FROM api_keys",
    "INSERT INTO api_keys (name, key_sha256, last_four, scopes) VALUES ('a', sha256('a'), 'aaaa', '{admin}')",
    "UPDATE api_keys SET revoked_at = NULL",
    "DELETE FROM api_keys",
    "TRUNCATE events, routing_outbox, webhook_delivery_sagas, webhook_delivery_jobs, dead_letters",
    "CREATE TABLE mine (id bigint)",
    "ALTER TABLE events DISABLE TRIGGER ALL",
    "DROP TRIGGER events_never_change ON events",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "SET session_replication_role = replica",
    "SET ROLE retention_operator",
    "CREATE ROLE friend",
    "SELECT refuse_untrue_dead_letters()",
    "SELECT give_retention_its_owner()",
    "UPDATE retention_state SET horizon = now()",
]

SECRETS_READERS = {Role.DELIVERY, Role.SUBSCRIPTIONS}
KEY_CHECKERS = {Role.INGEST, Role.SUBSCRIPTIONS, Role.ADMIN}

LIMITED_TO: list[tuple[str, set[Role]]] = [
    ("SELECT secret FROM subscription_secrets", SECRETS_READERS),
    ("SELECT active FROM subscription_history", {Role.ADMIN}),
    ("SELECT snapshot FROM routing_decisions", {Role.ADMIN}),
    (INSERT_DECISION, {Role.ROUTER}),
    ("UPDATE subscription_health SET consecutive_failures = 0", {Role.HEALTH_MONITOR}),
    ("UPDATE subscription_health_mark SET counted_until = now()", {Role.HEALTH_MONITOR}),
    ("SELECT dead_letter_id FROM operational_outbox", {Role.HEALTH_MONITOR}),
    (
        "SELECT subscription_id FROM subscription_health",
        {Role.HEALTH_MONITOR, Role.ORCHESTRATOR, Role.SUBSCRIPTIONS},
    ),
    ("SELECT consecutive_failures FROM subscription_health", {Role.HEALTH_MONITOR, Role.SUBSCRIPTIONS}),
    ("SELECT * FROM missed_while_disabled(1, 1)", {Role.SUBSCRIPTIONS}),
    ("SELECT * FROM requeue_dead_letter('{}')", {Role.ADMIN}),
    ("SELECT * FROM resend_sagas('{}')", {Role.ADMIN}),
    ("SELECT retry_now(1, NULL, 1)", {Role.ADMIN}),
    ("SELECT * FROM start_bulk_operation('requeue', NULL, '{}', 1, '', NULL, 'me')", {Role.ADMIN}),
    ("SELECT * FROM step_bulk_operation('{}', 1, 1, 1, 1)", {Role.ADMIN}),
    ("SELECT move_bulk_operation(1, NULL, 'Stopped')", {Role.ADMIN}),
    ("SELECT pace_bulk_operation(1, NULL, 1)", {Role.ADMIN}),
    ("SELECT count_bulk_lanes('requeue', NULL, '{}', NULL)", {Role.ADMIN}),
    ("SELECT retention_horizon()", {Role.ADMIN}),
    ("SELECT status FROM bulk_operations", {Role.ADMIN}),
    ("SELECT done FROM bulk_operation_lanes", {Role.ADMIN}),
    ("SELECT create_api_key('a', sha256('a'), 'aaaa', NULL, '{admin}')", {Role.ADMIN}),
    ("SELECT * FROM list_api_keys()", {Role.ADMIN}),
    ("SELECT * FROM prune_finished('30 days', 1, NULL, 0, true)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT * FROM prune_dead_letters('30 days', 1, NULL, 0, true)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT * FROM remove_payloads('30 days', 1, NULL, 0, true)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT * FROM prune_events('30 days', 1, NULL, 0, true)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT plan_retention(NULL, NULL, NULL, NULL)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT * FROM start_erasure(NULL, 'a', NULL, NULL, 'b', NULL, 'me')", {Role.ADMIN}),
    ("SELECT * FROM step_erasure(1, 1, 1)", {Role.ADMIN, Role.RETENTION}),
    ("SELECT deleted FROM retention_days", {Role.ADMIN}),
    ("SELECT reason FROM erasures", {Role.ADMIN}),
    ("SELECT horizon FROM retention_state", {Role.ADMIN}),
    ("SELECT name FROM hooksaga_migrations", {Role.ADMIN}),
    ("SELECT revoke_api_key(1)", {Role.ADMIN}),
    ("SELECT * FROM check_api_key(sha256('a'))", KEY_CHECKERS),
]


def both(denied: dict[Role, list[str]]) -> list[tuple[Role, str]]:
    return [(role, statement) for role, statements in denied.items() for statement in statements]


async def log_in(connect: Connect, role: Role) -> Connection:
    """The observer's transactions only read unless it says otherwise, which nothing keeps it from saying."""
    connection = await connect(role)
    if role is Role.OBSERVER:
        await connection.execute("SET default_transaction_read_only = off")
    return connection


@pytest.fixture(scope="module")
def logged_in(module_database: str) -> Iterator[dict[Role, psycopg.Connection]]:
    """Connections of all roles to one empty database, as those of `log_in`: a refused statement changes nothing."""
    address = DatabaseAddress(module_database)
    with ExitStack() as opened:
        connections = {
            role: opened.enter_context(psycopg.connect(role_conninfo(address, role), autocommit=True))
            for role in FUNCTION_ROLES
        }
        connections[Role.OBSERVER].execute("SET default_transaction_read_only = off")
        yield connections


@pytest.mark.parametrize(("role", "statement"), both(DENIED))
def test_a_role_is_refused(logged_in: dict[Role, psycopg.Connection], role: Role, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        logged_in[role].execute(statement.encode())


@pytest.mark.parametrize("statement", DENIED_TO_ALL)
def test_every_role_is_refused(logged_in: dict[Role, psycopg.Connection], statement: str) -> None:
    assert FUNCTION_ROLES
    for role in FUNCTION_ROLES:
        with pytest.raises(errors.InsufficientPrivilege):
            logged_in[role].execute(statement.encode())


@pytest.mark.parametrize(("statement", "allowed"), LIMITED_TO)
async def test_only_these_roles_may(connect: Connect, statement: str, allowed: set[Role]) -> None:
    may: set[Role] = set()
    for role in FUNCTION_ROLES:
        connection = await log_in(connect, role)
        try:
            await connection.execute(statement.encode())
        except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):
            continue
        may.add(role)
    assert may == allowed


async def test_nobody_logs_in_as_the_role_that_may_delete(connect: Connect, seed: Seed) -> None:
    assert await seed.value("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'retention_operator'") is False
    members = "SELECT count(*) FROM pg_auth_members WHERE roleid = 'retention_operator'::regrole"
    assert await seed.value(members) == 0


async def test_no_role_has_powers_beyond_its_grants(seed: Seed) -> None:
    powerful = await seed.rows(
        "SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)"
        " AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)",
        [[role.value for role in FUNCTION_ROLES]],
    )
    assert powerful == []


async def test_every_role_has_timeouts_without_session_settings(connect: Connect) -> None:
    assert FUNCTION_ROLES
    for role in FUNCTION_ROLES:
        connection = await connect(role)
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            shown = await (await connection.execute("SELECT current_setting(%s)", [name])).fetchone()
            assert shown not in (None, ("0",), ("",)), (role, name)


async def test_what_the_observer_does_only_reads_and_ends_soon(connect: Connect) -> None:
    connection = await connect(Role.OBSERVER)
    with pytest.raises(errors.ReadOnlySqlTransaction):
        await connection.execute("CREATE TEMPORARY TABLE mine (id bigint)")
    limits = (
        "SELECT current_setting('statement_timeout'), rolconnlimit FROM pg_roles WHERE rolname = 'observer'"
    )
    assert await (await connection.execute(limits)).fetchone() == ("10s", 10)


# The positive control: what each role is for, done by the real stage as that role.


async def test_ingest_may_add_events_and_read_its_repeats(connect: Connect) -> None:
    connection = await connect(Role.INGEST)
    draft = EventDraft("a", "{}", external_id="key")
    first, again = [(await accept_events(connection, [draft]))[0] for _ in range(2)]
    assert isinstance(first, AcceptedEvent)
    assert isinstance(again, AcceptedEvent)
    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
    assert await api_keys.check_api_keys(connection, [b"0" * 32]) == []


async def test_the_router_may_start_sagas(connect: Connect, seed: Seed) -> None:
    event_id = await seed.event_for(await seed.subscription())
    routed = await route_events(await connect(Role.ROUTER))
    assert (routed.event_ids, len(routed.saga_ids)) == ([event_id], 1)


async def test_the_orchestrator_may_move_sagas_to_every_end(connect: Connect, seed: Seed) -> None:
    connection = await connect(Role.ORCHESTRATOR)
    sagas = [await seed.saga() for _ in range(3)]
    started = await orchestrate.start_all(connection, POLICY)
    assert [moved.status for moved in started] == [SagaStatus.IN_PROGRESS] * 3
    jobs = {moved.saga_id: moved.job_id or 0 for moved in started}
    await seed.finish(jobs[sagas[0]])
    await seed.finish(jobs[sagas[1]], "http_503")
    assert {moved.status for moved in await orchestrate.apply_results(connection, POLICY)} == {
        SagaStatus.COMPLETED,
        SagaStatus.PENDING_RETRY,
    }
    await seed.finish(jobs[sagas[2]], "http_503")
    (dead,) = await orchestrate.apply_results(connection, LAST_ATTEMPT)
    assert dead.dead_letter_id is not None
    assert (await orchestrate.cancel_saga(connection, POLICY, sagas[1])).status is SagaStatus.DEAD_LETTERED
    assert (await orchestrate.seconds_until_next_wake(connection) or 0) > 0
    await seed.connection.execute("UPDATE subscription_flow SET wake_at = now()")
    assert (await orchestrate.start_attempts(connection, POLICY)).moves == []
    assert await orchestrate.seconds_until_next_wake(connection) is None


async def test_the_worker_may_claim_and_report(connect: Connect, seed: Seed) -> None:
    connection = await connect(Role.DELIVERY)
    job_id = await seed.job()
    held = await deliver.claim_waiting_jobs(connection, slow=False, limit=5, worker_id="w", lease_seconds=60)
    assert [job.id for job in held] == [job_id]
    await deliver.hand_back_jobs(connection, held, worker_id="w")
    (job,) = await deliver.claim_jobs(connection, [job_id], worker_id="w", lease_seconds=60)
    assert seed.box.open((job.secrets or [""])[0]) == seed.secrets[job.subscription_id]
    result = AttemptResult(job, outcome())
    assert await deliver.record_results(connection, [result], worker_id="w") == {job_id}


@pytest.mark.parametrize(("max_lost_leases", "status"), [(5, "Pending"), (1, "Failed")])
async def test_the_cleaner_may_end_leases(
    connect: Connect, seed: Seed, max_lost_leases: int, status: str
) -> None:
    job_id = await seed.job()
    await seed.claim(job_id)
    await seed.expire_lease(job_id)
    (reset,) = await clean_leases(await connect(Role.LEASE_CLEANER), max_lost_leases=max_lost_leases)
    assert (reset.id, reset.status) == (job_id, status)


async def test_the_monitor_may_count_switch_off_and_tell(connect: Connect, seed: Seed) -> None:
    connection = await connect(Role.HEALTH_MONITOR)
    await seed.subscription("hooksaga.delivery.dead_lettered")
    await seed.dead_letter()
    gone = await seed.subscription()
    await seed.finish(await seed.job(gone), "http_410")
    await pass_time(seed, minutes=2)
    done = [await step(connection, HealthPolicy()) for step in STEPS]
    assert [len(one.events) for one in done] == [1, 0, 1, 0, 0, 0]
    assert sum(one.attempts for one in done) == 2


async def test_the_subscription_admin_may_configure(connect: Connect, seed: Seed) -> None:
    connection = await connect(Role.SUBSCRIPTIONS)
    url = "https://receiver.example.com/hook"
    new = NewSubscription(event_type="a", callback_url=url)
    made = await subscriptions.create_subscription(
        connection,
        new,
        tenant_id="default",
        callback_url=url,
        sealed_secret=seed.box.seal("whsec_x"),
        box=seed.box,
    )
    assert len(await verify_subscription.sealed_secrets(connection, made.id)) == 1
    assert (await verify_subscription.mark_verified(connection, made.id, url)).verified
    changed = await subscriptions.change_subscription(
        connection,
        made.id,
        SubscriptionChange(active=False, headers={"x-token": "1"}),
        tenant_id=None,
        policy=AddressPolicy(),
        box=seed.box,
    )
    assert not changed.active
    assert set(changed.headers) == {"x-token"}
    assert await subscriptions.list_subscriptions(connection, tenant_id=None) == [changed]
    await subscriptions.deactivate_subscription(connection, made.id, tenant_id=None)


async def test_the_operator_may_look_at_everything_and_requeue(connect: Connect, seed: Seed) -> None:
    connection = await connect(Role.ADMIN)
    dead_letter_id = await seed.dead_letter()
    (listed,) = (await list_dead_letters(connection, DeadLetterFilter())).items
    assert listed.id == dead_letter_id
    shown = await inspect.show_dead_letter(connection, dead_letter_id, tenant_id=None)
    event = await inspect.show_event(connection, shown.webhook_id, tenant_id=None)
    assert [len(saga.attempts) for saga in event.sagas] == [1]
    routing = await explain_event(connection, shown.webhook_id, tenant_id=None, default_attempt_limit=5)
    assert [decision.matched for decision in routing.decisions] == [True]
    assert (await requeue.requeue_one(connection, dead_letter_id)).created
    assert (await requeue.requeue_matching(connection, DeadLetterFilter())).matched == 0
    assert (await inspect.read_stats(connection)).dead_letters_24h == 1
    assert [finding.rows for finding in await audit(connection) if finding.rows] == []
    key_id = await api_keys.create_api_key(connection, "hs_secret_key", name="ci")
    assert [key.id for key in await api_keys.list_api_keys(connection)] == [key_id]
    await api_keys.revoke_api_key(connection, key_id)
