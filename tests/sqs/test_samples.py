"""Every event of events-samples goes to its function, in a process under AWS's own runtime client."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from hooksaga.core.saga import SagaStatus
from hooksaga.local import receiver as receivers
from hooksaga.local.sqs.function_table import FUNCTIONS, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.queue_set import create_queues
from hooksaga.local.sqs.sqs_api import SqsApi
from hooksaga.local.tls import Certificates, ensure_certificates
from tests.database.seed import Seed
from tests.sqs.conftest import new_name
from tests.sqs.sample_cases import ALL_GOOD, CASES, COMPLETED_JOBS, WEBHOOK_ID, content_of, holds

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.asyncio(loop_scope="module"),
]

SAMPLES = Path(__file__).parents[2] / "events-samples"
FILES = sorted(SAMPLES.glob("*/*.json"))
TABLES = (
    "api_keys, bulk_operations, bulk_operation_lanes, erasures, dead_letters, events, operational_outbox,"
    " routing_outbox, subscriptions, subscription_flow, subscription_health, subscription_secrets,"
    " subscription_history,"
    " subscription_patterns, subscription_pattern_history,"
    " routing_decisions, webhook_delivery_jobs, webhook_delivery_sagas"
)


def name_of(path: Path) -> str:
    return path.relative_to(SAMPLES).with_suffix("").as_posix()


class Stage:
    """Functions, a database and a receiver; `set_up` brings the rows of a case, with ids from 1 on."""

    def __init__(
        self, seed: Seed, functions: dict[str, LambdaFunction], receiver: str, certificates: Certificates
    ) -> None:
        self.seed = seed
        self.functions = functions
        self.certificates = certificates
        self._receiver = receiver

    async def set_up(self, name: str, receiver: str | None = None) -> None:
        await self.seed.connection.execute("SET session_replication_role = replica")
        await self.seed.connection.execute(f"TRUNCATE {TABLES} RESTART IDENTITY")  # type: ignore[arg-type]
        await self.seed.connection.execute("UPDATE retention_state SET horizon = NULL")
        await self.seed.connection.execute("SET session_replication_role = DEFAULT")
        await CASES[name].prepare(self.seed, receiver or self._receiver)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("samples")
    certificates = ensure_certificates(folder)
    running = await receivers.serve(certificates=certificates)
    connection = await psycopg.AsyncConnection.connect(module_database, autocommit=True)
    seed = Seed(connection)
    async with SqsApi(sqs_endpoint) as api:
        visibility = {queue: kind.visibility_seconds for kind in FUNCTIONS.values() for queue in kind.queues}
        queues = await create_queues(api, new_name("samples"), visibility_seconds=visibility)
    environment = {
        "HOOKSAGA_DATABASE_URL": module_database,
        "HOOKSAGA_SECRETS_KEY": seed.secrets_key,
        "HOOKSAGA_EGRESS_ALLOW": "127.0.0.0/8",
        "HOOKSAGA_CA_FILE": str(certificates.ca),
        "AWS_ENDPOINT_URL": sqs_endpoint,
        **queues.settings(),
    }
    functions = {
        name: LambdaFunction(function_spec(name, kind, environment), folder)
        for name, kind in FUNCTIONS.items()
    }
    yield Stage(seed, functions, f"{running.url}/ok", certificates)
    for function in functions.values():
        await function.stop()
    await connection.close()
    await running.stop()


async def test_every_sample_has_a_case_and_every_function_a_sample() -> None:
    assert {name_of(path) for path in FILES} == set(CASES)
    assert {path.parent.name for path in FILES} == set(FUNCTIONS)


@pytest.mark.parametrize("path", FILES, ids=name_of)
async def test_a_function_answers_its_sample(stage: Stage, path: Path) -> None:
    case = CASES[name_of(path)]
    await stage.set_up(name_of(path))
    outcome = await stage.functions[path.parent.name].invoke(json.loads(path.read_text(encoding="utf-8")))
    assert outcome.error is None
    answer = content_of(outcome.payload)
    assert holds(answer, case.answer), answer
    for query, count in case.rows.items():
        assert await stage.seed.value(query) == count, query


async def test_a_key_that_was_made_works_and_one_that_was_revoked_does_not(stage: Stage) -> None:
    await stage.set_up("admin/direct.create_key")
    admin, ingest = stage.functions["admin"], stage.functions["ingest"]
    made = (await admin.invoke({"action": "create_key", "name": "new"})).payload
    assert await post_status(ingest, made["key"]) == 202
    await admin.invoke({"action": "revoke_key", "id": made["id"]})
    assert await post_status(ingest, made["key"]) == 401
    shown = (await admin.invoke({"action": "list_keys"})).payload["items"][0]
    assert shown["revoked_at"] is not None
    assert made["key"] not in json.dumps(shown)


async def test_only_a_direct_request_needs_no_key(stage: Stage) -> None:
    """Nothing that a client of the gateway can put into its event gives it an operator's rights."""
    await stage.set_up("admin/request.dead_letters")
    direct = json.loads((SAMPLES / "admin/request.dead_letters.json").read_text())
    gateway = json.loads((SAMPLES / "admin/api_gateway_refused.wrong_key.json").read_text())
    claimed = {"hooksaga.operator": "me", "X-Hooksaga-Operator": "me"}
    headers = {name: [value] for name, value in claimed.items()}
    mixed = {**gateway, **direct, **claimed, "multiValueHeaders": headers, "headers": claimed}
    mixed["path"] = gateway["path"]
    admin = stage.functions["admin"]
    assert (await admin.invoke(direct)).payload["status"] == 200
    assert (await admin.invoke(mixed)).payload["statusCode"] == 401


async def post_status(ingest: LambdaFunction, key: str) -> int:
    event: dict[str, Any] = json.loads((SAMPLES / "ingest/api_gateway.user_updated.json").read_text())
    event["headers"] = event["multiValueHeaders"] = None
    event["multiValueHeaders"] = {"Authorization": [f"Bearer {key}"]}
    return (await ingest.invoke(event)).payload["statusCode"]


@pytest.mark.parametrize("function", ["router", "orchestrator", "delivery"])
async def test_a_batch_that_fails_whole_reports_all_and_leaves_nothing_behind(
    stage: Stage, function: str
) -> None:
    """Cold, then warm, then good again in the same process."""
    sample = {"router": "two_events", "orchestrator": "subscriptions_due", "delivery": "two_jobs"}[function]
    event = json.loads((SAMPLES / function / f"sqs.{sample}.json").read_text())
    everything = [{"itemIdentifier": record["messageId"]} for record in event["Records"]]
    role = {"router": "router_worker", "orchestrator": "saga_orchestrator", "delivery": "job_worker"}[
        function
    ]
    await stage.set_up(f"{function}/sqs.{sample}")
    under_test = stage.functions[function]
    await stage.seed.connection.execute(f"ALTER ROLE {role} NOLOGIN")  # type: ignore[arg-type]
    try:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s"
        await stage.seed.connection.execute(query, [role])
        outcomes = [await under_test.invoke(event) for _ in range(2)]
    finally:
        await stage.seed.connection.execute(f"ALTER ROLE {role} LOGIN")  # type: ignore[arg-type]
    assert [outcome.payload for outcome in outcomes] == [{"batchItemFailures": everything}] * 2
    last = await under_test.invoke(event)
    assert last.payload == ALL_GOOD
    assert (last.cold, last.pid) == (False, outcomes[0].pid)


async def test_jobs_that_their_workers_did_not_survive_are_sent_one_after_the_other(stage: Stage) -> None:
    """If one of them is what they died of, it takes no other job with it."""
    await stage.set_up("delivery/sqs.two_jobs")
    await stage.seed.rewrite(
        "UPDATE webhook_delivery_jobs SET claim_count = 2, lost_leases = 2, worker_id = 'dead'"
    )
    event = json.loads((SAMPLES / "delivery/sqs.two_jobs.json").read_text())
    assert (await stage.functions["delivery"].invoke(event)).payload == ALL_GOOD
    first, second = await stage.seed.rows(
        "SELECT status::text, claim_count, leased_at, finished_at FROM webhook_delivery_jobs ORDER BY id"
    )
    assert [job["status"] for job in (first, second)] == ["Completed", "Completed"]
    assert [job["claim_count"] for job in (first, second)] == [3, 3]
    assert second["leased_at"] >= first["finished_at"]


@pytest.mark.parametrize(
    "payload",
    ["9" * 4301, '{"a": 1.10, "a": 1e999}', r'"\ud83d"', "[" * 2000 + "]" * 2000],
    ids=["long", "twice", "half a pair", "deep"],
)
async def test_an_odd_payload_is_told_to_the_byte(stage: Stage, payload: str) -> None:
    """As text: the function's own response is JSON that Python writes."""
    await stage.set_up("admin/direct.list_keys")
    await stage.seed.dead_letter(
        await stage.seed.subscription("order.created", "https://a.example/"), payload
    )
    await stage.seed.rewrite("UPDATE events SET webhook_id = %s", [WEBHOOK_ID])
    admin = stage.functions["admin"]
    for sample, field in (("event", "payload"), ("dead_letter", "payload_snapshot")):
        event = json.loads((SAMPLES / f"admin/request.{sample}.json").read_text())
        outcome = await admin.invoke(event)
        assert outcome.error is None
        assert outcome.payload["status"] == 200
        assert outcome.payload["body"].endswith(f',"{field}":{payload}}}')


async def test_a_job_that_is_locked_for_a_moment_is_delivered_all_the_same(
    stage: Stage, module_database: str
) -> None:
    """The orchestrator sends first and notes it then: its short lock must not cost the only message of a job."""
    await stage.set_up("delivery/sqs.two_jobs")
    delivery = stage.functions["delivery"]
    await delivery.warm_up()
    event = json.loads((SAMPLES / "delivery/sqs.two_jobs.json").read_text())
    async with await psycopg.AsyncConnection.connect(module_database) as other:
        await other.execute("SELECT id FROM webhook_delivery_jobs WHERE id = 1 FOR UPDATE")
        invoking = asyncio.create_task(delivery.invoke(event))
        leased = "SELECT count(*) FROM webhook_delivery_jobs WHERE status <> 'Pending'"
        while await stage.seed.value(leased) == 0:
            await asyncio.sleep(0.005)
    assert (await invoking).payload == ALL_GOOD
    assert await stage.seed.value(COMPLETED_JOBS) == 2


async def test_a_saga_that_the_database_refuses_fails_the_tick_after_all_the_rest_is_done(
    stage: Stage,
) -> None:
    """And fails no message: the tick is what somebody is told of."""
    await stage.set_up("orchestrator/eventbridge.tick")
    orchestrator = stage.functions["orchestrator"]
    samples = SAMPLES / "orchestrator"
    tick = json.loads((samples / "eventbridge.tick.json").read_text())
    messages = json.loads((samples / "sqs.subscriptions_due.json").read_text())
    subscription = await stage.seed.subscription()
    retry = await stage.seed.saga(SagaStatus.PENDING_RETRY, subscription)
    await stage.seed.rewrite(
        "UPDATE webhook_delivery_sagas SET next_attempt_at = now() WHERE id = %s", [retry]
    )
    table = "ALTER TABLE webhook_delivery_jobs"
    await stage.seed.connection.execute(f"{table} ADD CONSTRAINT broken CHECK (saga_id <> 1) NOT VALID")
    try:
        told = await orchestrator.invoke(messages)
        ticked = await orchestrator.invoke(tick)
    finally:
        await stage.seed.connection.execute(f"{table} DROP CONSTRAINT broken")
    assert told.payload == ALL_GOOD
    assert ticked.error is not None
    assert "broken" in str(ticked.error)
    states = await stage.seed.rows("SELECT id, status::text FROM webhook_delivery_sagas ORDER BY id")
    assert {row["id"]: row["status"] for row in states} == {
        1: "Pending",
        2: "InProgress",
        retry: "InProgress",
    }
    assert (await orchestrator.invoke(tick)).error is None
    assert await stage.seed.status_of(1) is SagaStatus.IN_PROGRESS


@pytest.mark.parametrize(
    ("function", "role"), [("router", "router_worker"), ("orchestrator", "saga_orchestrator")]
)
async def test_a_connection_that_broke_while_its_process_was_frozen_is_replaced(
    stage: Stage, function: str, role: str
) -> None:
    await stage.set_up(f"{function}/eventbridge.tick")
    event = json.loads((SAMPLES / function / "eventbridge.tick.json").read_text())
    before = await stage.functions[function].invoke(event)
    os.kill(before.pid, signal.SIGSTOP)
    query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = %s"
    await stage.seed.connection.execute(query, [role])
    os.kill(before.pid, signal.SIGCONT)
    after = await stage.functions[function].invoke(event)
    assert (after.error, after.pid) == (None, before.pid)


async def test_a_kept_connection_that_the_receiver_closed_meanwhile_costs_no_attempt(stage: Stage) -> None:
    receiver = await receivers.serve(certificates=stage.certificates)
    await stage.set_up("delivery/sqs.two_jobs", f"{receiver.url}/ok")
    both = json.loads((SAMPLES / "delivery/sqs.two_jobs.json").read_text())
    first, second = ({"Records": [record]} for record in both["Records"])
    before = await stage.functions["delivery"].invoke(first)
    os.kill(before.pid, signal.SIGSTOP)
    await receiver.stop()
    port = int(receiver.url.rpartition(":")[2])
    receiver = await receivers.serve(port=port, certificates=stage.certificates)
    os.kill(before.pid, signal.SIGCONT)
    after = await stage.functions["delivery"].invoke(second)
    await receiver.stop()
    assert after.pid == before.pid
    assert await stage.seed.value(COMPLETED_JOBS) == 2


async def test_events_are_accepted_while_sqs_is_away(stage: Stage, tmp_path: Path) -> None:
    """No message was sent for the event, and the router's tick finds it."""
    await stage.set_up("ingest/api_gateway.order_created")
    spec = stage.functions["ingest"].spec
    away = {**spec.environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    cut_off = LambdaFunction(replace(spec, environment=away), tmp_path)
    outcome = await cut_off.invoke(
        json.loads((SAMPLES / "ingest/api_gateway.order_created.json").read_text())
    )
    await cut_off.stop()
    assert outcome.payload["statusCode"] == 202
    assert outcome.seconds < 10
    assert "messages not taken" in cut_off.log()
    tick = json.loads((SAMPLES / "router/eventbridge.tick.json").read_text())
    assert (await stage.functions["router"].invoke(tick)).payload == {"routed": 1}
