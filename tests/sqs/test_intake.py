"""The function `intake` under faults: nothing is lost, and nothing is stored twice."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from hooksaga.local.sqs.event_source import record
from hooksaga.local.sqs.function_table import FUNCTIONS, function_spec
from hooksaga.local.sqs.functions import LambdaFunction
from hooksaga.local.sqs.queue_set import QueueSet, create_queues
from hooksaga.local.sqs.sqs_api import SqsApi
from tests.database.seed import Seed
from tests.faults.promises import Promise
from tests.sqs.conftest import new_name

pytestmark = [
    pytest.mark.sqs,
    pytest.mark.asyncio(loop_scope="module"),
]

ALL_GOOD: dict[str, Any] = {"batchItemFailures": []}
GOOD = {"event_type": "a", "payload": 1}
CLOUD_EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "a"}


class Place:
    """The function, its database and its queues."""

    def __init__(self, seed: Seed, api: SqsApi, queues: QueueSet, environment: dict[str, str], folder: Path):
        self.seed = seed
        self._api = api
        self.queues = queues
        self._environment = environment
        self._folder = folder
        self._made: list[LambdaFunction] = []
        self.function = self.with_variables()

    def with_variables(self, **variables: str) -> LambdaFunction:
        spec = function_spec("intake", FUNCTIONS["intake"], {**self._environment, **variables})
        self._made.append(LambdaFunction(spec, self._folder))
        return self._made[-1]

    async def stop(self) -> None:
        for function in self._made:
            await function.stop()

    async def events(self) -> list[dict[str, Any]]:
        return await self.seed.rows("SELECT * FROM events ORDER BY id")

    async def set_aside(self) -> list[dict[str, Any]]:
        """Take the messages from the redrive queue."""
        url = self.queues.redrive["intake"]
        found = await self._api.receive(url)
        await self._api.delete(url, [one["ReceiptHandle"] for one in found])
        return found

    async def woken(self) -> list[int]:
        """Take the ids of events from the queue of the router."""
        url = self.queues.work["routing"]
        found = await self._api.receive(url)
        await self._api.delete(url, [one["ReceiptHandle"] for one in found])
        return sorted(json.loads(one["Body"])["event_id"] for one in found)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    module_database: str, sqs_endpoint: str, runtime_client: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Place]:
    connection = await psycopg.AsyncConnection.connect(module_database, autocommit=True)
    async with SqsApi(sqs_endpoint) as api:
        visibility = {queue: kind.visibility_seconds for kind in FUNCTIONS.values() for queue in kind.queues}
        queues = await create_queues(api, new_name("intake"), visibility_seconds=visibility)
        environment = {
            "HOOKSAGA_DATABASE_URL": module_database,
            "AWS_ENDPOINT_URL": sqs_endpoint,
            **queues.settings(),
        }
        folder = tmp_path_factory.mktemp("intake")
        place = Place(Seed(connection), api, queues, environment, folder)
        yield place
        await place.stop()
    await connection.close()


@pytest_asyncio.fixture(loop_scope="module")
async def place(running: Place) -> Place:
    await running.seed.connection.execute("SET session_replication_role = replica")
    await running.seed.connection.execute("TRUNCATE events, routing_outbox RESTART IDENTITY")
    await running.seed.connection.execute("SET session_replication_role = DEFAULT")
    await running.set_aside()
    await running.woken()
    return running


def batch(*bodies: object, **attributes: str) -> dict[str, Any]:
    """A batch of messages m0, m1, …; each has the attributes."""
    given = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    messages = [
        {
            "MessageId": f"m{number}",
            "ReceiptHandle": "r",
            "Body": body if isinstance(body, str) else json.dumps(body),
            "MD5OfBody": "",
            "MessageAttributes": given,
        }
        for number, body in enumerate(bodies)
    ]
    return {"Records": [record(one, "arn:aws:sqs:us-east-1:123456789012:intake") for one in messages]}


def returned(*numbers: int) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": f"m{number}"} for number in numbers]}


async def test_what_is_stored_wakes_the_router_once(place: Place) -> None:
    for woken in ([1, 2], []):
        assert (await place.function.invoke(batch(GOOD, CLOUD_EVENT))).payload == ALL_GOOD
        assert await place.woken() == woken
    assert [(row["source"], row["external_id"]) for row in await place.events()] == [
        ("arn:aws:sqs:us-east-1:123456789012:intake", "m0"),
        ("/s", "1"),
    ]


async def test_an_invalid_message_is_set_aside_as_it_came_with_the_reason(place: Place) -> None:
    body = '{"event_type": "no blanks",\n "payload": "ü\\u0000"}'
    answer = await place.function.invoke(batch(body, GOOD, kind="x"))
    assert answer.payload == ALL_GOOD
    (found,) = await place.set_aside()
    assert found["Body"] == body
    given = {name: one["StringValue"] for name, one in found["MessageAttributes"].items()}
    assert given == {
        "kind": "x",
        "hooksaga_refusal": "invalid_event_type: event_type must have 1 to 100 characters from A-Z a-z 0-9 _ . : / -",
    }
    assert len(await place.events()) == 1


async def test_the_log_names_message_field_and_rule_and_no_value(place: Place) -> None:
    await place.function.invoke(batch({"event_type": "secret value", "payload": "hidden"}))
    lines = [json.loads(line) for line in place.function.log().splitlines() if '"message refused"' in line]
    last = lines[-1]
    assert (last["level"], last["message_id"], last["error_code"], last["field"], last["position"]) == (
        "ERROR",
        "m0",
        "invalid_event_type",
        "event_type",
        0,
    )
    assert last["reason"].startswith("event_type must have")
    assert "secret value" not in place.function.log()
    assert "hidden" not in place.function.log()


async def test_only_the_refused_events_of_a_batch_are_set_aside(place: Place) -> None:
    bad = {"event_type": "no blanks", "payload": 2}
    await place.function.invoke(batch({"items": [GOOD, bad, GOOD]}, [CLOUD_EVENT, 7]))
    assert [json.loads(one["Body"]) for one in await place.set_aside()] == [{"items": [bad]}, [7]]
    assert len(await place.events()) == 3


async def test_a_key_with_other_content_is_set_aside(place: Place) -> None:
    first, other = ({**GOOD, "payload": number, "idempotency_key": "k"} for number in (1, 2))
    assert (await place.function.invoke(batch(first))).payload == ALL_GOOD
    assert (await place.function.invoke(batch(first, other))).payload == ALL_GOOD
    (found,) = await place.set_aside()
    assert json.loads(found["Body"]) == other
    assert found["MessageAttributes"]["hooksaga_refusal"]["StringValue"].startswith("idempotency_conflict: ")
    assert [row["payload"] for row in await place.events()] == [1]


@pytest.mark.guarantee(Promise.QUEUES, "a message of the intake while the database is away")
async def test_while_the_database_is_away_valid_messages_come_back_and_invalid_ones_do_not(
    place: Place,
) -> None:
    event = batch(GOOD, "not json", {"items": [CLOUD_EVENT, GOOD]}, [CLOUD_EVENT, 7])
    await place.seed.connection.execute("ALTER ROLE event_ingest_writer NOLOGIN")
    try:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'event_ingest_writer'"
        await place.seed.connection.execute(query)
        outcome = await place.function.invoke(event)
    finally:
        await place.seed.connection.execute("ALTER ROLE event_ingest_writer LOGIN")
    assert outcome.payload == returned(0, 2, 3)
    assert [one["Body"] for one in await place.set_aside()] == ["not json"]
    again = {"Records": [event["Records"][number] for number in (0, 2, 3)]}
    for _ in range(2):
        assert (await place.function.invoke(again)).payload == ALL_GOOD
    assert [row["external_id"] for row in await place.events()] == ["m0", "m2/1", "1"]


async def test_an_event_that_the_database_rejects_comes_back_alone(place: Place) -> None:
    """The database may take it later, for example when a partition has space again."""
    table = "ALTER TABLE events"
    await place.seed.connection.execute(
        f"{table} ADD CONSTRAINT broken EXCLUDE USING btree (event_type WITH =) WHERE (event_type = 'b')"
    )
    b = {"event_type": "b", "payload": 1}
    try:
        outcome = await place.function.invoke(batch(GOOD, b, b, GOOD))
    finally:
        await place.seed.connection.execute(f"{table} DROP CONSTRAINT broken")
    assert outcome.payload == returned(2)
    assert [row["external_id"] for row in await place.events()] == ["m0", "m1", "m3"]
    assert await place.set_aside() == []


async def test_an_invalid_message_comes_back_while_it_cannot_be_set_aside(place: Place) -> None:
    """Then SQS moves it after its receives."""
    cut_off = place.with_variables(HOOKSAGA_INTAKE_REDRIVE_QUEUE_URL="http://127.0.0.1:1/none")
    assert (await cut_off.invoke(batch(GOOD, "not json"))).payload == returned(1)
    assert len(await place.events()) == 1


async def test_a_full_message_is_set_aside_without_a_reason(place: Place) -> None:
    attributes = {f"n{number}": "x" for number in range(10)}
    assert (await place.function.invoke(batch("not json", **attributes))).payload == ALL_GOOD
    (found,) = await place.set_aside()
    assert set(found["MessageAttributes"]) == set(attributes)


async def test_large_messages_are_set_aside_too(place: Place) -> None:
    large = ["x" * 200_000] * 4
    assert (await place.function.invoke(batch(*large))).payload == ALL_GOOD
    assert sorted(len(one["Body"]) for one in await place.set_aside()) == [200_000] * 4


async def test_the_catalogue_counts_as_it_does_in_the_api(place: Place) -> None:
    await place.seed.connection.execute(
        "INSERT INTO event_types (name, schema, on_mismatch, attributes) VALUES"
        """ ('typed', '{"type": "integer"}', 'reject', '[]'),"""
        """ ('rich', NULL, 'reject', '[{"name": "country", "pointer": "/country", "kind": "string"}]')"""
    )
    bodies = [{"event_type": "typed", "payload": payload} for payload in (1, "x")]
    rich = {"event_type": "rich", "payload": {"country": "DE"}}
    assert (await place.function.invoke(batch(*bodies, rich))).payload == ALL_GOOD
    first, second = await place.events()
    assert (first["payload"], second["extracted_attributes"]) == (1, {"country": "DE"})
    (found,) = await place.set_aside()
    assert found["MessageAttributes"]["hooksaga_refusal"]["StringValue"].startswith(
        "payload_mismatch: payload: "
    )


async def test_the_settings_reach_the_function(place: Place) -> None:
    function = place.with_variables(
        HOOKSAGA_INTAKE_EVENT_TYPE="{/source}/{/detail-type}",
        HOOKSAGA_INTAKE_TENANT="{/detail/tenant}",
        HOOKSAGA_INTAKE_ORDERING_KEY="{/detail/order}",
        HOOKSAGA_INTAKE_ATTRIBUTES="account=/account",
    )
    event = {"id": "1", "detail-type": "Paid", "source": "shop", "account": "1", "detail": {"tenant": "acme"}}
    event["detail"]["order"] = 7  # type: ignore[index]
    assert (await function.invoke(batch(event, GOOD))).payload == ALL_GOOD
    (row,) = await place.events()
    assert (row["event_type"], row["tenant_id"], row["ordering_key"]) == ("shop/Paid", "acme", "7")
    assert row["attributes"] == {"account": "1"}
    (found,) = await place.set_aside()
    assert found["MessageAttributes"]["hooksaga_refusal"]["StringValue"].startswith("invalid_tenant_id: ")


async def test_a_wrong_setting_is_named_and_no_message_is_lost(place: Place) -> None:
    function = place.with_variables(HOOKSAGA_INTAKE_TENANT="no blanks")
    outcome = await function.invoke(batch(GOOD))
    assert outcome.error is not None
    assert "HOOKSAGA_INTAKE_TENANT" in str(outcome.error)
    assert await place.events() == []
    assert await place.set_aside() == []


@pytest.mark.parametrize("record", [None, 7, {}, {"body": "{}"}, {"eventSource": "aws:s3", "messageId": "m"}])
async def test_a_record_that_is_no_message_costs_its_neighbours_nothing(place: Place, record: object) -> None:
    event = batch(GOOD)
    event["Records"].append(record)
    assert (await place.function.invoke(event)).payload == ALL_GOOD
    assert len(await place.events()) == 1
