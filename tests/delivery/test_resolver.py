"""Names to vetted addresses."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from hooksaga.adapters import resolver as resolver_module
from hooksaga.adapters.resolver import (
    KEPT_SECONDS,
    LOOKUP_THREADS,
    AddressBlocked,
    Lookup,
    NameNotFound,
    ResolveFailed,
    VettedResolver,
    system_lookup,
)
from hooksaga.core.address_policy import AddressPolicy

pytestmark = pytest.mark.timeout(10)

STRICT = AddressPolicy()
PUBLIC = "93.184.215.14"


@asynccontextmanager
async def resolver(lookup: Lookup, policy: AddressPolicy = STRICT) -> AsyncIterator[VettedResolver]:
    made = VettedResolver(policy, lookup)
    yield made
    await made.close()


def answering(*addresses: str) -> Lookup:
    return lambda _host: addresses


def failing(fault: Exception) -> Lookup:
    def lookup(_host: str) -> Sequence[str]:
        raise fault

    return lookup


async def addresses_of(
    lookup: Lookup, policy: AddressPolicy = STRICT, host: str = "hook.example.com"
) -> list[str]:
    async with resolver(lookup, policy) as vetted:
        return await vetted.addresses(host)


async def test_every_permitted_address_comes_back_in_order() -> None:
    async with resolver(answering(PUBLIC, "2606:4700::1")) as vetted:
        assert await vetted.addresses("hook.example.com") == [PUBLIC, "2606:4700::1"]


async def test_refused_addresses_are_dropped() -> None:
    assert await addresses_of(answering("10.0.0.1", PUBLIC, "::1", "169.254.169.254")) == [PUBLIC]


REFUSED = [
    *(
        "127.0.0.1",
        "0.0.0.0",
        "192.168.1.10",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fd00:ec2::254",
    ),
    *("2002:7f00:1::", "2001:0::1", "64:ff9b:1::7f00:1", "fe80::1%2", "no address"),
]


@pytest.mark.parametrize("address", REFUSED)
async def test_a_name_with_refused_addresses_only_is_blocked(address: str) -> None:
    with pytest.raises(AddressBlocked):
        await addresses_of(answering(address, "10.0.0.1"))


async def test_allowed_addresses_pass() -> None:
    assert await addresses_of(answering("127.0.0.1"), AddressPolicy.parse("127.0.0.0/8")) == ["127.0.0.1"]


@pytest.mark.parametrize("host", ["localhost", "dead.localhost"])
async def test_the_localhost_family_needs_no_look_up(host: str) -> None:
    broken = failing(AssertionError("looked up"))
    assert await addresses_of(broken, AddressPolicy.parse("127.0.0.0/8"), host) == ["127.0.0.1"]
    with pytest.raises(AddressBlocked):
        await addresses_of(broken, STRICT, host)


@pytest.mark.parametrize(
    ("fault", "raised"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no such name"), NameNotFound),
        (socket.gaierror(socket.EAI_NODATA, "no address"), NameNotFound),
        (UnicodeError("label too long"), NameNotFound),
        (socket.gaierror(socket.EAI_AGAIN, "SERVFAIL or a timeout"), ResolveFailed),
        (socket.gaierror(socket.EAI_FAIL, "refused"), ResolveFailed),
        (OSError(24, "too many open files"), ResolveFailed),
    ],
)
async def test_faults_of_dns_tell_a_missing_name_from_a_passing_trouble(
    fault: Exception, raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        await addresses_of(failing(fault))


async def test_an_empty_answer_is_a_missing_name() -> None:
    with pytest.raises(NameNotFound):
        await addresses_of(answering())


async def test_slow_names_do_not_hold_back_the_others() -> None:
    """All threads but one hang; the quick name is answered all the same."""
    released = threading.Event()

    def lookup(host: str) -> Sequence[str]:
        if host.startswith("slow"):
            released.wait(60)
        return (PUBLIC,)

    async with resolver(lookup) as vetted:
        slow = [
            asyncio.create_task(vetted.addresses(f"slow{number}.example.com"))
            for number in range(LOOKUP_THREADS - 1)
        ]
        await asyncio.sleep(0)  # now all of them have asked
        async with asyncio.timeout(30):
            await vetted.addresses("quick.example.com")
        assert not any(task.done() for task in slow)
        released.set()
        await asyncio.gather(*slow)


async def test_closing_does_not_wait_for_a_look_up() -> None:
    asked, released = threading.Event(), threading.Event()

    def lookup(_host: str) -> Sequence[str]:
        asked.set()
        released.wait(2)
        return (PUBLIC,)

    vetted = VettedResolver(STRICT, lookup)
    pending = asyncio.ensure_future(vetted.addresses("slow.example.com"))
    while not asked.is_set():
        await asyncio.sleep(0.001)
    began = time.monotonic()
    await vetted.close()
    assert time.monotonic() - began < 1
    released.set()
    assert len(await pending) == 1


async def test_closing_cancels_nobody_who_waits_for_a_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver_module, "LOOKUP_THREADS", 1)
    asked, released = threading.Event(), threading.Event()

    def lookup(_host: str) -> Sequence[str]:
        asked.set()
        released.wait(2)
        return (PUBLIC,)

    vetted = VettedResolver(STRICT, lookup)
    pending = [asyncio.create_task(vetted.addresses(f"{number}.example.com")) for number in range(2)]
    while not asked.is_set():
        await asyncio.sleep(0.001)
    await vetted.close()
    released.set()
    first, second = await asyncio.gather(*pending, return_exceptions=True)
    assert first == [PUBLIC]
    assert isinstance(second, ResolveFailed)


async def test_what_was_found_is_kept_for_its_time_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a timer, which comes late in a process that was frozen."""
    asked: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        asked.append(host)
        return (PUBLIC,)

    async with resolver(lookup) as vetted:
        for _ in range(3):
            await vetted.addresses("hook.example.com")
        assert len(asked) == 1
        loop = asyncio.get_running_loop()
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now + KEPT_SECONDS)
        await vetted.addresses("hook.example.com")
        assert len(asked) == 2


def test_names_are_looked_up_as_they_are_and_never_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/egress holds the same against a real name server, where namespaces are permitted."""
    asked: list[str] = []

    def getaddrinfo(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(2, 1, 6, "", (PUBLIC, 0)), (2, 1, 6, "", (PUBLIC, 0)), (10, 1, 6, "", ("fe80::1", 0, 0, 7))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert system_lookup("hook.example.com") == [PUBLIC, "fe80::1%7"]
    assert asked == ["hook.example.com."]
