"""The key that seals signing secrets can be replaced and thrown away, and nothing changes for anybody."""

import base64
import secrets as randomness
from typing import LiteralString

import pytest

from hooksaga.adapters.database import Connection, Role
from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret, generate_key
from hooksaga.core.secrets_keys import split_keys
from hooksaga.operations import reseal_secrets
from hooksaga.operations.reseal_secrets import Resealed, reseal_batch, together
from hooksaga.operations.subscriptions import rotate_secret
from tests.conftest import Connect
from tests.database.seed import Seed

OLD, NEW = generate_key(), generate_key()
OF_ONE: LiteralString = "WHERE subscription_id = %s"
HOLD: LiteralString = f"SELECT FROM subscription_secrets {OF_ONE} FOR UPDATE"


@pytest.fixture
def sealed_with_old(seed: Seed) -> Seed:
    seed.box = SecretBox([OLD])
    return seed


async def stored(seed: Seed) -> dict[int, str]:
    rows = await seed.rows("SELECT subscription_id, secret FROM subscription_secrets ORDER BY id")
    return {row["subscription_id"]: row["secret"] for row in rows}


async def test_afterwards_the_new_key_alone_opens_every_secret(
    admin: Connection, sealed_with_old: Seed
) -> None:
    seed = sealed_with_old
    for _ in range(3):
        await seed.subscription()
    done = await reseal_batch(admin, SecretBox([NEW, OLD]))
    assert done == Resealed(3, 3, (), None)
    alone = SecretBox([NEW])
    assert {one: alone.open(secret) for one, secret in (await stored(seed)).items()} == seed.secrets


async def test_a_repeat_changes_nothing(admin: Connection, sealed_with_old: Seed) -> None:
    await sealed_with_old.subscription()
    await reseal_batch(admin, SecretBox([NEW, OLD]))
    before = await stored(sealed_with_old)
    assert await reseal_batch(admin, SecretBox([NEW, OLD])) == Resealed(1, 0, (), None)
    assert await stored(sealed_with_old) == before


async def test_a_dry_run_counts_and_changes_nothing(admin: Connection, sealed_with_old: Seed) -> None:
    await sealed_with_old.subscription()
    before = await stored(sealed_with_old)
    assert await reseal_batch(admin, SecretBox([NEW, OLD]), dry_run=True) == Resealed(1, 1, (), None)
    assert await stored(sealed_with_old) == before


async def test_batch_by_batch_it_comes_to_the_end(
    admin: Connection, sealed_with_old: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reseal_secrets, "BATCH", 2)
    for _ in range(5):
        await sealed_with_old.subscription()
    box, steps = SecretBox([NEW, OLD]), 0
    done = await reseal_batch(admin, box)
    while done.last_id is not None:
        steps += 1
        done = together(done, await reseal_batch(admin, box, after_id=done.last_id))
    assert (done.checked, done.changed, steps) == (5, 5, 2)


async def test_a_secret_that_no_key_opens_is_named_and_stops_nobody(
    admin: Connection, sealed_with_old: Seed
) -> None:
    lost, good = await sealed_with_old.subscription(), await sealed_with_old.subscription()
    await sealed_with_old.rewrite(
        "UPDATE subscription_secrets SET secret = 'damaged' WHERE subscription_id = %s", [lost]
    )
    done = await reseal_batch(admin, SecretBox([NEW, OLD]))
    assert (done.changed, done.unreadable) == (1, (lost,))
    kept = await stored(sealed_with_old)
    assert kept[lost] == "damaged"
    assert SecretBox([NEW]).open(kept[good]) == sealed_with_old.secrets[good]


async def test_a_rotation_in_between_has_the_last_word(
    connect: Connect, admin: Connection, sealed_with_old: Seed
) -> None:
    """The batch was read before, and its UPDATE comes after."""
    subscription_id = await sealed_with_old.subscription()
    box = SecretBox([NEW, OLD])
    rotating = await connect(Role.SUBSCRIPTIONS)

    class Rotated(SecretBox):
        def reseal(self, sealed: str) -> str | None:
            return box.seal("an older secret")

    query = reseal_secrets.load_queries("reseal_secrets")["next_secrets"]
    rows = await reseal_secrets.fetch_rows(
        admin, query, {"after_id": 0, "limit": 10}, reseal_secrets._SecretRow
    )
    await rotate_secret(
        rotating, subscription_id, tenant_id=None, sealed_secret=box.seal("whsec_new"), overlap_seconds=0
    )
    found, _ = reseal_secrets._reseal(Rotated([NEW]), rows)
    await reseal_secrets.replace_values(admin, "secrets", found)
    assert box.open((await stored(sealed_with_old))[subscription_id]) == "whsec_new"


@pytest.mark.parametrize("hold", [HOLD, "UPDATE subscription_secrets SET expires_at = now() " + OF_ONE])
async def test_a_locked_secret_is_skipped_and_named(
    owner: Connection, admin: Connection, sealed_with_old: Seed, hold: LiteralString
) -> None:
    """Whether another session only holds the row, or has changed it and not yet committed."""
    seed, box = sealed_with_old, SecretBox([NEW, OLD])
    first, held, last = [await seed.subscription() for _ in range(3)]
    before = await stored(seed)
    await admin.execute("SET lock_timeout = '500ms'")
    async with owner.transaction(force_rollback=True):
        await owner.execute(hold, [held])
        assert await reseal_batch(admin, box) == Resealed(3, 2, (), None, locked=(held,))
    kept = await stored(seed)
    assert {one for one in kept if kept[one] != before[one]} == {first, last}
    assert await reseal_batch(admin, box) == Resealed(3, 1, (), None)
    assert SecretBox([NEW]).open((await stored(seed))[held]) == seed.secrets[held]


def test_results_of_batches_add_up() -> None:
    first = Resealed(3, 1, (1,), 3, in_clear=(2,), locked=(3,))
    second = Resealed(2, 0, (4,), None, in_clear=(5,), locked=(5,))
    assert together(first, second) == Resealed(5, 1, (1, 4), None, in_clear=(2, 5), locked=(3, 5))


def test_without_the_old_key_what_it_sealed_stays_shut() -> None:
    with pytest.raises(UnreadableSecret):
        SecretBox([NEW]).reseal(SecretBox([OLD]).seal("whsec_"))


def test_a_key_may_be_any_of_several() -> None:
    key = base64.urlsafe_b64encode(randomness.token_bytes(32)).decode()
    assert split_keys(f" {key} ,{OLD},") == [key, OLD]
