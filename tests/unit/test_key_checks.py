"""A valid key is asked for once a second; an unknown one each time; a key that was revoked here not once more."""

import asyncio
from collections.abc import Sequence

from hooksaga.api.key_checks import MAX_REMEMBERED, REMEMBERED_SECONDS, KeyChecks
from hooksaga.operations.api_keys import ApiKey


class Keys:
    """The keys that the database knows, a clock, and how often it was asked."""

    def __init__(self, *known: bytes) -> None:
        self.known, self.asked, self.now = set(known), list[list[bytes]](), 100.0
        self.gate = asyncio.Event()
        self.gate.set()
        self.checks = KeyChecks(self.read, clock=lambda: self.now)

    async def read(self, hashes: Sequence[bytes]) -> list[ApiKey]:
        self.asked.append(sorted(hashes))
        valid = [ApiKey(one, 1, None, ["admin"]) for one in hashes if one in self.known]
        await self.gate.wait()
        return valid

    async def is_valid(self, key: bytes) -> bool:
        return await self.checks.check(key) is not None


async def test_a_valid_key_is_remembered_for_a_second() -> None:
    keys = Keys(b"mine")
    assert [await keys.is_valid(b"mine") for _ in range(3)] == [True] * 3
    assert len(keys.asked) == 1
    keys.now += REMEMBERED_SECONDS
    keys.known.clear()
    assert not await keys.is_valid(b"mine")


async def test_an_unknown_key_is_asked_for_each_time_so_that_a_new_one_is_valid_at_once() -> None:
    keys = Keys()
    assert not await keys.is_valid(b"new")
    keys.known.add(b"new")
    assert await keys.is_valid(b"new")


async def test_a_key_that_was_revoked_here_is_refused_at_once_even_by_a_check_on_its_way() -> None:
    keys = Keys(b"mine")
    keys.gate.clear()
    early = asyncio.create_task(keys.is_valid(b"mine"))
    while not keys.asked:
        await asyncio.sleep(0)
    keys.known.clear()
    keys.checks.forget()
    keys.gate.set()
    await early
    assert not await keys.is_valid(b"mine")


async def test_callers_at_one_time_share_a_statement() -> None:
    keys = Keys(b"a", b"b")
    keys.gate.clear()
    calls = [asyncio.create_task(keys.is_valid(one)) for one in (b"a", b"b", b"a", b"c")]
    while not keys.asked:
        await asyncio.sleep(0)
    keys.gate.set()
    assert await asyncio.gather(*calls) == [True, True, True, False]
    assert len(keys.asked) <= 2


async def test_what_is_remembered_is_bounded() -> None:
    many = [number.to_bytes(4) for number in range(3 * MAX_REMEMBERED)]
    keys = Keys(*many)
    for one in many:
        assert await keys.is_valid(one)
    assert len(keys.checks._known) <= MAX_REMEMBERED + 1
