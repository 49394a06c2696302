"""The database holds every writer of events to the rules of attributes, and compares them with a repeated key."""

import json
from typing import Any

import pytest
from psycopg import DatabaseError

from hooksaga.adapters.database import Connection
from hooksaga.core.errors import Conflict
from hooksaga.core.event_attributes import read_attributes
from hooksaga.core.event_input import EventDraft
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from tests.attribute_cases import BAD, GOOD
from tests.database.seed import Seed


async def insert_as_producer(connection: Connection, attributes: str) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL ROLE event_producer")
        await connection.execute(
            "INSERT INTO events (event_type, payload, attributes) VALUES ('a', '{}', %s)", [attributes]
        )


@pytest.mark.parametrize("given", GOOD, ids=lambda text: ascii(text)[:40])
async def test_what_the_api_takes_is_stored_as_it_was_given(
    ingest: Connection, seed: Seed, given: str
) -> None:
    (event,) = await accept_events(
        ingest, [EventDraft("a", "{}", attributes=read_attributes(given.encode()))]
    )
    assert isinstance(event, AcceptedEvent)
    assert await seed.value("SELECT attributes = %s::jsonb FROM events", [given])


@pytest.mark.parametrize(("given", "place"), BAD.items(), ids=lambda text: ascii(text)[:40])
async def test_a_producer_by_sql_gets_the_same_error(seed: Seed, given: str, place: str) -> None:
    with pytest.raises(DatabaseError, match=f"^{place}: ") as refused:
        await insert_as_producer(seed.connection, given)
    assert refused.value.sqlstate == "HS001"
    assert await seed.value("SELECT count(*) FROM events") == 0


async def test_a_producer_by_sql_may_give_attributes_or_none(seed: Seed) -> None:
    await insert_as_producer(seed.connection, '{"order_id": "A-1", "total": 1.10}')
    await insert_as_producer(seed.connection, "{}")
    rows = await seed.rows("SELECT attributes::text AS text FROM events ORDER BY id")
    assert [row["text"] for row in rows] == ['{"total": 1.10, "order_id": "A-1"}', "{}"]


def keyed(attributes: dict[str, Any]) -> EventDraft:
    text = read_attributes(json.dumps(attributes).encode())
    return EventDraft("a", "{}", external_id="key", attributes=text)


@pytest.mark.parametrize(
    ("again", "is_same"),
    [
        ({"b": "x", "a": 1}, True),
        ({"a": 1.0, "b": "x"}, True),
        ({"a": 2, "b": "x"}, False),
        ({"a": "1", "b": "x"}, False),
        ({"a": 1}, False),
        ({}, False),
        ({"a": 1, "b": "x", "c": True}, False),
    ],
    ids=str,
)
async def test_attributes_belong_to_the_content_of_a_key(
    ingest: Connection, again: dict[str, Any], is_same: bool
) -> None:
    (first,) = await accept_events(ingest, [keyed({"a": 1, "b": "x"})])
    (second,) = await accept_events(ingest, [keyed(again)])
    assert isinstance(first, AcceptedEvent)
    if is_same:
        assert isinstance(second, AcceptedEvent)
        assert (second.id, second.duplicate) == (first.id, True)
    else:
        assert isinstance(second, Conflict)
