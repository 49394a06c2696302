"""A rotation of the key covers the values of headers; what is in clear is sealed; neither changes anything else."""

import json
from typing import Any

import pytest

from hooksaga.adapters.database import Connection, DatabaseAddress, Role, Session
from hooksaga.adapters.secret_box import SecretBox, generate_key
from hooksaga.core.address_policy import AddressPolicy
from hooksaga.core.models import SubscriptionChange
from hooksaga.operations import reseal_headers
from hooksaga.operations.reseal_headers import reseal_headers_batch
from hooksaga.operations.reseal_secrets import Resealed, reseal_all
from hooksaga.operations.subscriptions import change_subscription
from hooksaga.stages.own_headers import open_headers
from tests.conftest import Connect
from tests.database.seed import Seed

OLD, NEW = generate_key(), generate_key()
BOTH = SecretBox([NEW, OLD])
CLEAR = '{"authorization": "Bearer hush", "x-shop": "berlin"}'


@pytest.fixture
def old(seed: Seed) -> Seed:
    seed.box = SecretBox([OLD])
    return seed


async def stored(seed: Seed) -> dict[int, Any]:
    rows = await seed.rows("SELECT id, headers FROM subscriptions ORDER BY id")
    return {row["id"]: row["headers"] for row in rows}


async def in_clear(seed: Seed) -> int:
    """The id of a subscription as SQL, or a version before, left it."""
    subscription_id = await seed.subscription()
    await seed.connection.execute(
        "UPDATE subscriptions SET headers = %s::jsonb WHERE id = %s", [CLEAR, subscription_id]
    )
    return subscription_id


async def test_afterwards_the_new_key_alone_opens_every_value(admin: Connection, old: Seed) -> None:
    first = await old.subscription(headers={"x-a": "1", "x-b": "2"})
    await old.subscription()
    gone = await old.subscription(headers={"x-a": "3"})
    await old.connection.execute("UPDATE subscriptions SET deleted_at = now() WHERE id = %s", [gone])
    assert await reseal_headers_batch(admin, BOTH) == Resealed(2, 2, (), None)
    alone, kept = SecretBox([NEW]), await stored(old)
    assert [open_headers(alone, kept[one]) for one in (first, gone)] == [
        {"x-a": "1", "x-b": "2"},
        {"x-a": "3"},
    ]
    assert await reseal_headers_batch(admin, BOTH) == Resealed(2, 0, (), None)
    assert await stored(old) == kept


async def test_values_in_clear_are_sealed_and_named(admin: Connection, old: Seed) -> None:
    clear, sealed = await in_clear(old), await old.subscription(headers={"x-a": "1"})
    before = await stored(old)
    looked = await reseal_headers_batch(admin, SecretBox([OLD]), dry_run=True)
    assert looked == Resealed(2, 1, (), None, in_clear=(clear,))
    assert await stored(old) == before
    done = await reseal_headers_batch(admin, BOTH, only_clear=True)
    assert done == Resealed(1, 1, (), None, in_clear=(clear,))
    kept = await stored(old)
    assert kept[sealed] == before[sealed], "that is left to a rotation"
    assert "hush" not in json.dumps(kept)
    assert open_headers(BOTH, kept[clear]) == json.loads(CLEAR)
    assert (await reseal_headers_batch(admin, BOTH, only_clear=True)).checked == 0


async def test_batch_by_batch_it_comes_to_the_end(
    database_address: DatabaseAddress, old: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reseal_headers, "BATCH", 2)
    ids = [await in_clear(old) for _ in range(5)]
    session = Session(database_address, Role.SUBSCRIPTIONS)
    try:

        async def batch(connection: Connection, *, after_id: int) -> Resealed:
            return await reseal_headers_batch(connection, BOTH, after_id=after_id)

        done = await reseal_all(session, batch)
    finally:
        await session.close()
    assert done == Resealed(5, 5, (), None, in_clear=tuple(ids))
    assert "hush" not in json.dumps(await stored(old))


async def test_the_many_without_headers_are_not_read(seed: Seed) -> None:
    """`up` looks at each start."""
    await seed.connection.execute(
        "INSERT INTO subscriptions (event_types, callback_url) SELECT '{a}'::varchar[], 'https://a.example/'"
        " FROM generate_series(1, 5000)"
    )
    await in_clear(seed)
    await seed.connection.execute("ANALYZE subscriptions")
    query = reseal_headers.load_queries("reseal_secrets")["next_headers"]
    params = {"after_id": 0, "limit": 500, "only_clear": True}
    plan = await seed.rows("EXPLAIN " + query, params)
    assert "idx_sub_headers" in str(plan)


@pytest.mark.parametrize("headers", ['{"x-a": {"sealed": "damaged"}}', '{"x-a": 1}', '{"x-a": null}'])
async def test_what_cannot_be_opened_is_named_and_stops_no_other(
    admin: Connection, old: Seed, headers: str
) -> None:
    lost, good = await old.subscription(), await old.subscription(headers={"x-a": "1"})
    await old.connection.execute(
        "UPDATE subscriptions SET headers = %s::jsonb WHERE id = %s", [headers, lost]
    )
    done = await reseal_headers_batch(admin, BOTH)
    assert (done.checked, done.changed, done.unreadable) == (2, 1, (lost,))
    kept = await stored(old)
    assert kept[lost] == json.loads(headers)
    assert open_headers(SecretBox([NEW]), kept[good]) == {"x-a": "1"}


async def test_a_change_in_between_has_the_last_word(connect: Connect, admin: Connection, old: Seed) -> None:
    """The batch was read before, and its UPDATE comes after."""
    subscription_id = await in_clear(old)
    query = reseal_headers.load_queries("reseal_secrets")["next_headers"]
    params = {"after_id": 0, "limit": 10, "only_clear": False}
    rows = await reseal_headers.fetch_rows(admin, query, params, reseal_headers._HeadersRow)
    change = SubscriptionChange(headers={"x-shop": "paris", "authorization": None})
    await change_subscription(
        await connect(Role.SUBSCRIPTIONS),
        subscription_id,
        change,
        tenant_id=None,
        policy=AddressPolicy(),
        box=BOTH,
    )
    found = reseal_headers._reseal(BOTH, rows, only_clear=False)
    assert found.changed
    await reseal_headers.replace_values(admin, "headers", found.changed)
    assert open_headers(BOTH, (await stored(old))[subscription_id]) == {"x-shop": "paris"}


@pytest.mark.parametrize("only_clear", [True, False])
async def test_a_locked_subscription_is_skipped_and_named(
    owner: Connection, admin: Connection, old: Seed, only_clear: bool
) -> None:
    first, held, last = [await in_clear(old) for _ in range(3)]
    await admin.execute("SET lock_timeout = '500ms'")
    async with owner.transaction():
        await owner.execute("SELECT FROM subscriptions WHERE id = %s FOR UPDATE", [held])
        done = await reseal_headers_batch(admin, BOTH, only_clear=only_clear)
        assert done == Resealed(3, 2, (), None, in_clear=(first, held, last), locked=(held,))
    kept = await stored(old)
    assert [one for one in kept if kept[one] == json.loads(CLEAR)] == [held]
    done = await reseal_headers_batch(admin, BOTH, only_clear=True)
    assert done == Resealed(1, 1, (), None, in_clear=(held,))


async def test_sealing_touches_nothing_but_the_headers(admin: Connection, old: Seed) -> None:
    """No history of the subscription, no fresh start of its health, no other column but updated_at."""
    subscription_id = await in_clear(old)
    query = (
        "SELECT to_jsonb(s) - 'headers' - 'updated_at' AS row, (SELECT count(*) FROM subscription_history) AS history,"
        " (SELECT jsonb_agg(to_jsonb(h)) FROM subscription_health h) AS health"
        " FROM subscriptions s WHERE s.id = %s"
    )
    before = await old.rows(query, [subscription_id])
    assert (await reseal_headers_batch(admin, BOTH)).changed == 1
    assert await old.rows(query, [subscription_id]) == before


async def test_only_who_may_open_them_may_read_them(connect: Connect, old: Seed) -> None:
    await old.subscription(headers={"x-a": "1"})
    allowed = set[Role]()
    for role in Role:
        try:
            await (await connect(role)).execute("SELECT headers FROM subscriptions")
            allowed.add(role)
        except Exception as fault:  # noqa: BLE001 - which one is asserted
            assert "permission denied" in str(fault)  # noqa: PT017
    assert allowed == {Role.OWNER, Role.DELIVERY, Role.SUBSCRIPTIONS}
