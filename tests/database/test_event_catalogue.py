"""The catalogue in a process: never older than the events that it lets pass, and no round trip for a lone event."""

import asyncio
from typing import Any

import pytest

from hooksaga.adapters.database import Connection
from hooksaga.adapters.payload_schemas import compile_schema
from hooksaga.core.errors import InvalidInput
from hooksaga.core.event_attributes import all_attributes
from hooksaga.core.event_input import EventDraft
from hooksaga.operations.event_types import EventTypeContent, delete_event_type, put_event_type
from hooksaga.stages.accept_events import AcceptedEvent, accept_events
from hooksaga.stages.event_catalogue import NO_ENTRIES, EventCatalogue
from tests.database.seed import Seed

TEXT = EventTypeContent(schema='{"type": "string"}')
RULE = '[{"name": "n", "pointer": "/n", "kind": "number"}]'


class Loads(EventCatalogue):
    """Counts its round trips."""

    def __init__(self, **more: Any) -> None:
        super().__init__(compile_schema, **more)
        self.loads = 0

    async def load(self, connection: Connection) -> bool:
        self.loads += 1
        return await super().load(connection)


async def accept(ingest: Connection, catalogue: EventCatalogue, *drafts: EventDraft) -> list[str]:
    answers = await accept_events(ingest, drafts, catalogue=catalogue)
    return [one.code if isinstance(one, InvalidInput) else type(one).__name__ for one in answers]


async def test_a_lone_event_costs_no_round_trip_for_its_type(ingest: Connection, admin: Connection) -> None:
    catalogue = Loads()
    for _ in range(2):
        assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["AcceptedEvent"]
    assert (catalogue.loads, catalogue.revision) == (0, NO_ENTRIES)
    await put_event_type(admin, "b", TEXT)
    for _ in range(3):
        assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["AcceptedEvent"]
    assert catalogue.loads == 1


async def test_no_event_is_stored_by_an_old_catalogue(
    ingest: Connection, admin: Connection, seed: Seed
) -> None:
    catalogue = Loads()
    assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["AcceptedEvent"]
    await put_event_type(admin, "a", TEXT)
    assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["payload_mismatch"]
    await delete_event_type(admin, "a")
    assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["AcceptedEvent"]
    await put_event_type(admin, "a", EventTypeContent(archived=True))
    assert await accept(ingest, catalogue, EventDraft("a", "1")) == ["event_type_archived"]
    assert await seed.value("SELECT count(*) FROM events") == 2


async def test_a_mixed_batch_is_checked_as_a_whole_by_one_revision(
    ingest: Connection, admin: Connection, seed: Seed
) -> None:
    catalogue = Loads()
    await put_event_type(admin, "a", TEXT)
    drafts = [EventDraft("a", "1"), EventDraft("a", '"x"'), EventDraft("b", "1"), EventDraft("a", "[]")]
    wanted = ["payload_mismatch", "AcceptedEvent", "AcceptedEvent", "payload_mismatch"]
    assert await accept(ingest, catalogue, *drafts) == wanted
    assert await accept(ingest, catalogue, *drafts) == wanted
    rows = await seed.rows("SELECT event_type, payload::text FROM events ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [("a", '"x"'), ("b", "1")] * 2


async def test_a_row_that_the_database_refuses_fails_alone_beside_one_that_its_type_refuses(
    ingest: Connection, admin: Connection
) -> None:
    await put_event_type(admin, "a", TEXT)
    poison = EventDraft("b", "{}", external_id="")
    answers = await accept(ingest, Loads(), EventDraft("a", "1"), poison, EventDraft("a", '"x"'))
    assert answers == ["payload_mismatch", "event_refused", "AcceptedEvent"]


async def test_a_known_key_is_answered_even_if_its_type_refuses_it(
    ingest: Connection, admin: Connection
) -> None:
    catalogue, draft = Loads(), EventDraft("a", "1", external_id="key")
    (first,) = await accept_events(ingest, [draft], catalogue=catalogue)
    await put_event_type(admin, "a", TEXT)
    (again,) = await accept_events(ingest, [draft], catalogue=catalogue)
    assert isinstance(first, AcceptedEvent)
    assert isinstance(again, AcceptedEvent)
    assert (again.id, again.duplicate) == (first.id, True)
    other = EventDraft("a", "2", external_id="key")
    assert await accept(ingest, catalogue, other, draft) == ["payload_mismatch", "AcceptedEvent"]


async def test_changes_while_events_are_accepted_lose_none(
    ingest: Connection, admin: Connection, seed: Seed
) -> None:
    catalogue, answers = Loads(), list[str]()

    async def send() -> None:
        for n in range(60):
            answers.extend(await accept(ingest, catalogue, EventDraft("a", str(n)), EventDraft("b", str(n))))

    async def change() -> None:
        for n in range(20):
            while len(answers) < 6 * n:  # a batch is checked again only so many times
                await asyncio.sleep(0)
            await put_event_type(admin, "a", EventTypeContent(description=str(n)))

    await asyncio.gather(send(), change())
    assert answers == ["AcceptedEvent"] * 120
    assert await seed.value("SELECT count(*) FROM events") == 120


async def test_unknown_types_are_refused_if_the_system_is_set_so(
    ingest: Connection, admin: Connection
) -> None:
    catalogue = Loads(reject_unknown=True)
    await put_event_type(admin, "order.created", EventTypeContent())
    drafts = [EventDraft("order.created", "1"), EventDraft("order.craeted", "1")]
    accepted, refused = await accept_events(ingest, drafts, catalogue=catalogue)
    assert isinstance(accepted, AcceptedEvent)
    assert isinstance(refused, InvalidInput)
    assert refused.code == "unknown_event_type"
    assert "order.created" in str(refused)


async def test_extracted_attributes_never_change(ingest: Connection, admin: Connection, seed: Seed) -> None:
    await put_event_type(admin, "a", EventTypeContent(attributes=RULE))
    draft = EventDraft("a", '{"n": 1.10}', attributes='{"n":"given","m":1}')
    assert await accept(ingest, Loads(), draft) == ["AcceptedEvent"]
    with pytest.raises(Exception, match="refused"):
        await seed.connection.execute("UPDATE events SET extracted_attributes = '{}'")
    (row,) = await seed.rows(
        "SELECT attributes::text AS given, extracted_attributes::text AS extracted, "
        "attributes_of_event(attributes, extracted_attributes) AS both, "
        "attributes_of_event(attributes, extracted_attributes) = %s::jsonb AS same FROM events",
        [all_attributes(draft.attributes, '{"n": 1.10}')],
    )
    assert row["extracted"] == '{"n": 1.10}'
    assert row["both"] == {"n": "given", "m": 1}
    assert row["same"]


async def test_a_schema_that_only_sql_can_store_stops_nothing(ingest: Connection, seed: Seed) -> None:
    await seed.connection.execute(
        """INSERT INTO event_types (name, schema) VALUES ('a', '{"type": "text"}')"""
    )
    assert await accept(ingest, Loads(), EventDraft("a", "1")) == ["AcceptedEvent"]
