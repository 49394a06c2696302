"""Events in: each one once, each answered, each byte kept."""

import asyncio

import pytest
from psycopg import errors

from hooksaga.adapters.database import Connection, Role
from hooksaga.core.errors import Conflict, HooksagaError, InvalidInput
from hooksaga.core.event_input import EventDraft, read_event
from hooksaga.stages.accept_events import AcceptedEvent, Answer, accept_events
from tests.conftest import SessionOf
from tests.database.seed import Seed


def keyed(key: str | None = "key", payload: str = "{}", **fields: str) -> EventDraft:
    return EventDraft(**{"event_type": "a", "payload": payload, "external_id": key, **fields})


def accepted(answers: list[Answer]) -> list[AcceptedEvent]:
    good = [answer for answer in answers if isinstance(answer, AcceptedEvent)]
    assert good == answers
    return good


async def test_fifty_calls_at_once_with_one_key_make_one_event(session_of: SessionOf, seed: Seed) -> None:
    sessions = [session_of(Role.INGEST) for _ in range(8)]
    for number in range(20):
        draft = keyed(f"key-{number}")
        calls = [
            sessions[n % 8].run(lambda connection, draft=draft: accept_events(connection, [draft]))
            for n in range(50)
        ]
        answers = accepted([answer for some in await asyncio.gather(*calls) for answer in some])
        assert len({(answer.id, answer.webhook_id, answer.created_at) for answer in answers}) == 1
        assert [answer.duplicate for answer in answers].count(False) == 1
    assert await seed.value("SELECT count(*) FROM events") == 20


async def test_batches_with_the_same_keys_in_any_order_do_not_deadlock(
    session_of: SessionOf, seed: Seed
) -> None:
    drafts = [keyed(f"key-{n}") for n in range(200)]
    sessions = [session_of(Role.INGEST) for _ in range(4)]
    orders = [drafts, drafts[::-1], drafts[100:] + drafts[:100], drafts[::2] + drafts[1::2]]
    answers = await asyncio.gather(
        *(
            session.run(lambda connection, order=order: accept_events(connection, order))
            for session, order in zip(sessions, orders, strict=True)
        )
    )
    assert all(len(accepted(some)) == 200 for some in answers)
    assert await seed.value("SELECT count(*) FROM events") == 200


async def test_a_producers_batch_keeps_its_order(ingest: Connection) -> None:
    """Ordered subscriptions deliver by event id, whatever the idempotency keys are."""
    keys = ["c", "a", None, "d", None, "b"]
    events = accepted(await accept_events(ingest, [keyed(key) for key in keys], in_order=True))
    assert [event.id for event in events] == sorted(event.id for event in events)


async def test_batches_in_other_orders_that_deadlock_are_run_again(session_of: SessionOf, seed: Seed) -> None:
    drafts = [keyed(f"key-{n}") for n in range(200)]
    answers = await asyncio.gather(
        *(
            session_of(Role.INGEST).run(
                lambda connection, order=order: accept_events(connection, order, in_order=True)
            )
            for order in (drafts, drafts[::-1])
        )
    )
    assert all(len(accepted(some)) == 200 for some in answers)
    assert await seed.value("SELECT count(*) FROM events") == 200


async def test_a_key_twice_in_one_batch_is_one_event_and_two_equal_answers(ingest: Connection) -> None:
    first, second, other = accepted(await accept_events(ingest, [keyed(), keyed(), keyed(None)]))
    assert (first.id, first.webhook_id) == (second.id, second.webhook_id)
    assert (first.duplicate, second.duplicate, other.duplicate) == (False, True, False)
    assert other.id != first.id


@pytest.mark.parametrize(
    "other",
    [keyed(payload="[]"), keyed(payload="{ }"), keyed(event_type="b"), keyed(ordering_key="o")],
    ids=["payload", "blank", "type", "ordering key"],
)
@pytest.mark.parametrize("together", [True, False])
async def test_a_known_key_with_other_content_is_a_conflict(
    ingest: Connection, seed: Seed, other: EventDraft, together: bool
) -> None:
    if together:
        first, second = await accept_events(ingest, [keyed(), other])
    else:
        (first,) = await accept_events(ingest, [keyed()])
        (second,) = await accept_events(ingest, [other])
    assert isinstance(first, AcceptedEvent)
    assert isinstance(second, Conflict)
    assert second.code == "idempotency_conflict"
    assert await seed.value("SELECT count(*) FROM events") == 1


async def test_the_answer_to_a_repeat_is_the_first_one(ingest: Connection) -> None:
    (first,) = accepted(await accept_events(ingest, [keyed()]))
    (again,) = accepted(await accept_events(ingest, [keyed()]))
    assert again == AcceptedEvent(first.id, first.webhook_id, "a", first.created_at, duplicate=True)


@pytest.mark.parametrize("fields", [{"tenant_id": "acme"}, {"source": "/orders"}, {"key": "Key"}])
async def test_keys_are_compared_exactly_and_per_tenant_and_source(
    ingest: Connection, seed: Seed, fields: dict[str, str]
) -> None:
    accepted(await accept_events(ingest, [keyed(), keyed(**fields)]))
    assert await seed.value("SELECT count(*) FROM events") == 2


async def test_events_without_a_key_are_never_the_same(ingest: Connection, seed: Seed) -> None:
    accepted(await accept_events(ingest, [keyed(None)] * 3))
    assert await seed.value("SELECT count(DISTINCT webhook_id) FROM events") == 3


PAYLOADS = {
    "decimals": '{"a":1.10}',
    "integers past 64 bits": "12345678901234567890",
    "a name twice": '{"a":1,"a":2,"a":1}',
    "more digits than a number of the store": "[1e131072, 1e-20000, 1e999999999, " + "9" * 140_000 + "]",
    "escaped NUL": '{"a":"\\u0000"}',
    "blanks": ' { "a" :\t[ 1 ,\r\n2 ] } ',
    "half a surrogate pair": '"\\ud83d"',
    "a pair the wrong way round": '"\\ude00\\ud83d"',
    "a number past doubles": "[1e400,-1e-400]",
    "a number of 5000 digits": "9" * 5000,
    "a fraction of 5000 digits": "0." + "3" * 5000,
    "minus zero": "-0.0",
    "escapes of every kind": '"\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u00e9"',
    "line separators": '"\u2028\u2029\ufeff\U0001f600\x7f"',
    "null": "null",
    "an empty name": '{"":{}}',
    "64 levels": "[" * 64 + "]" * 64,
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
async def test_a_payload_is_kept_to_the_byte(ingest: Connection, seed: Seed, payload: str) -> None:
    (event,) = accepted(await accept_events(ingest, [keyed(None, payload)]))
    assert await seed.value("SELECT payload::text FROM events WHERE id = %s", [event.id]) == payload


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
async def test_a_payload_is_known_again_to_the_byte(ingest: Connection, payload: str) -> None:
    accepted(await accept_events(ingest, [keyed("key", payload)]))
    (again,) = accepted(await accept_events(ingest, [keyed("key", payload)]))
    assert again.duplicate


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
async def test_what_the_reader_lets_through_the_database_takes(ingest: Connection, payload: str) -> None:
    body = b'{"event_type": "a", "payload": ' + payload.encode() + b"}"
    try:
        draft = read_event(body, max_bytes=262_144, idempotency_keys=[], tenant_id=None)
    except InvalidInput:
        return  # refused with a code, nothing was stored
    accepted(await accept_events(ingest, [draft]))


POISON = {
    "a NUL in the source": EventDraft("a", "{}", source="a\x00b", external_id="k"),
    "a NUL in the payload": EventDraft("a", '"\x00"'),
    "no JSON": EventDraft("a", "{"),
    "two values": EventDraft("a", "1 2"),
    "nothing": EventDraft("a", ""),
    "NaN": EventDraft("a", "NaN"),
    "a type that is none": EventDraft("a b", "{}"),
    "a type that is too long": EventDraft("a" * 101, "{}"),
    "a tenant that is none": EventDraft("a", "{}", tenant_id=""),
    "an empty key": EventDraft("a", "{}", external_id=""),
    "a key that is too long": EventDraft("a", "{}", external_id="k" * 256),
    "a source that is too long": EventDraft("a", "{}", source="s" * 256, external_id="k"),
    "escapes that no text is": EventDraft("a", '"\\u12"'),
}


HALF_A_PAIR = EventDraft("a", "{}", source="\ud83d", external_id="k")
UNSENDABLE = pytest.param(HALF_A_PAIR, id="half a surrogate pair in the source")


@pytest.mark.parametrize(
    "poison", [*(pytest.param(bad, id=name) for name, bad in POISON.items()), UNSENDABLE]
)
async def test_one_poisoned_event_is_refused_alone(
    ingest: Connection, seed: Seed, poison: EventDraft
) -> None:
    drafts = [keyed(f"key-{n}") for n in range(6)]
    drafts.insert(3, poison)
    answers = await accept_events(ingest, drafts)
    assert isinstance(answers[3], HooksagaError)
    assert len(accepted(answers[:3] + answers[4:])) == 6
    assert await seed.value("SELECT count(*) FROM events") == 6


async def test_each_event_waits_in_the_outbox(ingest: Connection, seed: Seed) -> None:
    events = accepted(await accept_events(ingest, [keyed(f"key-{n}") for n in range(3)]))
    accepted(await accept_events(ingest, [keyed("key-0")]))
    waiting = await seed.rows("SELECT event_id, created_at FROM routing_outbox ORDER BY event_id")
    assert [(row["event_id"], row["created_at"]) for row in waiting] == [
        (event.id, event.created_at) for event in events
    ]


async def test_an_event_of_a_producers_own_sql_transaction_waits_too(ingest: Connection, seed: Seed) -> None:
    await seed.connection.execute("CREATE ROLE producer LOGIN")
    try:
        await seed.connection.execute("GRANT USAGE ON SCHEMA public TO producer")
        await seed.connection.execute("GRANT INSERT (event_type, payload) ON events TO producer")
        async with seed.connection.transaction():
            await seed.connection.execute("SET LOCAL ROLE producer")
            await seed.connection.execute(
                "INSERT INTO events (event_type, payload) VALUES ('a', '{}'), ('b', '1')"
            )
        assert await seed.value("SELECT count(*) FROM routing_outbox") == 2
    finally:
        await seed.connection.execute("DROP OWNED BY producer")
        await seed.connection.execute("DROP ROLE producer")


async def test_an_event_that_is_rolled_back_leaves_nothing(ingest: Connection, seed: Seed) -> None:
    async with ingest.transaction(force_rollback=True):
        await accept_events(ingest, [keyed()])
    assert (
        await seed.value("SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM routing_outbox)") == 0
    )


async def test_when_the_connection_dies_nothing_was_accepted(ingest: Connection, seed: Seed) -> None:
    await ingest.execute("BEGIN")
    await accept_events(ingest, [keyed()])
    await seed.connection.execute("SELECT pg_terminate_backend(%s)", [ingest.info.backend_pid])
    with pytest.raises(errors.OperationalError):
        await ingest.execute("COMMIT")
    assert await seed.value("SELECT count(*) FROM events") == 0


async def test_no_events_are_no_error(ingest: Connection) -> None:
    assert await accept_events(ingest, []) == []


async def test_the_trace_is_kept_and_a_repeat_in_another_trace_is_a_repeat(
    ingest: Connection, seed: Seed
) -> None:
    first_trace, other_trace = (f"00-{letter * 32}-{'1' * 16}-01" for letter in "ab")
    told: list[AcceptedEvent] = []
    for draft in (keyed(traceparent=first_trace), keyed(traceparent=other_trace), keyed()):
        told += accepted(await accept_events(ingest, [draft]))
    assert [event.duplicate for event in told] == [False, True, True]
    assert {event.traced for event in told} == {(told[0].id, "a" * 32)}
    assert await seed.value("SELECT traceparent FROM events") == first_trace


async def test_an_event_without_a_trace_is_one(ingest: Connection, seed: Seed) -> None:
    (event,) = accepted(await accept_events(ingest, [keyed(None)]))
    assert event.traced == (event.id, event.webhook_id.hex)
    assert await seed.value("SELECT traceparent FROM events") is None
