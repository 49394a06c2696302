"""Whom the sender talks to: certificates, names and addresses."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import pytest

from hooksaga.adapters import resolver
from hooksaga.adapters.http_sender import HttpSender, SendOutcome
from hooksaga.adapters.resolver import Lookup
from hooksaga.core.address_policy import AddressPolicy
from tests.delivery.attempts import post
from tests.delivery.breaking_listener import handshake_only
from tests.delivery.hostile_receiver import Authority, raw, receiver, well

pytestmark = pytest.mark.timeout(10)


MakeSender = Callable[..., HttpSender]


def bad_tls(kind: str, authority: Authority, other: Authority) -> ssl.SSLContext:
    match kind:
        case "expired":
            return authority.tls(age_days=30)
        case "not yet valid":
            return authority.tls(age_days=-30)
        case "another name":
            return authority.tls("other.example.com")
        case "unknown authority":
            return other.tls()
        case _:
            raise AssertionError(kind)


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("kind", ["expired", "not yet valid", "another name", "unknown authority"])
async def test_no_request_goes_to_a_receiver_with_bad_tls(
    sender: HttpSender, authority: Authority, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    other = Authority(tmp_path_factory.mktemp("other") / "ca.pem")
    async with receiver(well, bad_tls(kind, authority, other)) as receiving:
        outcome = await post(sender, receiving.url())
        assert (outcome.error_code, outcome.resolved_ip) == ("tls_error", "127.0.0.1")
        assert receiving.requests == []


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_tls_before_1_2_is_refused(
    sender: HttpSender, authority: Authority, version: ssl.TLSVersion
) -> None:
    async with handshake_only(authority.outdated_tls(version)) as port:
        outcome = await post(sender, f"https://127.0.0.1:{port}/")
    assert (outcome.error_code, outcome.resolved_ip) == ("tls_error", "127.0.0.1")


async def test_a_wildcard_covers_one_level(sender: HttpSender, authority: Authority) -> None:
    async with receiver(well, authority.tls("*.dev.localhost")) as receiving:
        assert (await post(sender, receiving.url(host="a.dev.localhost"))).error_code is None
        assert (await post(sender, receiving.url(host="a.b.dev.localhost"))).error_code == "tls_error"


@pytest.mark.hostile("Receivers")
async def test_plain_http_behind_https(sender: HttpSender) -> None:
    async with receiver(well, None) as receiving:
        for exchange_start in (raw(b"HTTP/1.1 400 Bad\r\n\r\n"), well):
            receiving.behave = exchange_start
            outcome = await post(sender, receiving.url(), seconds=0.5)
            assert outcome.error_code in ("tls_error", "connection_reset", "timeout_total")
        assert receiving.requests == []


@pytest.mark.hostile("Receivers")
async def test_http_2_only(sender: HttpSender, authority: Authority) -> None:
    tls = authority.tls()
    tls.set_alpn_protocols(["h2"])
    frames = b"\0\0\x12\x04\0\0\0\0\0" + b"\0\3\0\0\0\x64" * 3
    async with receiver(raw(frames, then_close=False), tls) as receiving:
        assert (await post(sender, receiving.url())).error_code in ("protocol_error", "tls_error")


def in_turn(*answers: Sequence[str]) -> tuple[Lookup, list[str]]:
    """A name server with zero lifetimes: each look-up gets the next answer, the last one for ever."""
    asked: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return lookup, asked


async def test_the_address_that_was_vetted_is_the_one_that_is_dialled(
    make_sender: MakeSender, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """127.0.0.1 stands for a public address, 127.0.0.9 for one inside, which the second look-up answers."""
    monkeypatch.setattr(resolver, "KEPT_SECONDS", 0)
    lookup, asked = in_turn(["127.0.0.1"], ["127.0.0.9"])
    sender = make_sender(AddressPolicy.parse("127.0.0.1"), lookup=lookup)
    tls = authority.tls("rebind.example.com")
    async with receiver(well, tls) as public, receiver(well, tls, host="127.0.0.9") as inside:
        outcome = await post(sender, public.url(host="rebind.example.com"))
        assert (outcome.error_code, outcome.resolved_ip) == (None, "127.0.0.1")
        assert public.requests[0].header("host") == f"rebind.example.com:{public.port}"
        assert asked == ["rebind.example.com"]
        outcome = await post(sender, inside.url(host="rebind.example.com"))
        assert outcome == SendOutcome(None, "address_blocked", None, False, None, None, outcome.duration_ms)
        assert len(asked) == 2
        assert inside.connections == 0


async def test_of_mixed_addresses_only_permitted_ones_are_dialled(
    make_sender: MakeSender, authority: Authority
) -> None:
    lookup, _ = in_turn(["127.0.0.9", "10.0.0.1", "127.0.0.1"])
    sender = make_sender(AddressPolicy.parse("127.0.0.1"), lookup=lookup)
    async with receiver(well, authority.tls("mixed.example.com")) as receiving:
        outcome = await post(sender, receiving.url(host="mixed.example.com"))
    assert (outcome.error_code, outcome.resolved_ip) == (None, "127.0.0.1")


async def test_the_next_address_is_tried_when_one_refuses(
    make_sender: MakeSender, authority: Authority
) -> None:
    lookup, _ = in_turn(["127.0.0.2", "127.0.0.1"])
    sender = make_sender(lookup=lookup)
    async with receiver(well, authority.tls("two.example.com")) as receiving:
        outcome = await post(sender, receiving.url(host="two.example.com"))
    assert (outcome.error_code, outcome.resolved_ip) == (None, "127.0.0.1")


async def test_the_next_address_is_tried_when_one_is_not_the_receiver(
    make_sender: MakeSender, authority: Authority
) -> None:
    lookup, _ = in_turn(["127.0.0.2", "127.0.0.1"])
    sender = make_sender(lookup=lookup)
    async with (
        receiver(well, authority.tls("two.example.com")) as right,
        receiver(well, authority.tls("other.example.com"), host="127.0.0.2", port=right.port) as wrong,
    ):
        outcome = await post(sender, right.url(host="two.example.com"))
        assert (outcome.error_code, outcome.resolved_ip) == (None, "127.0.0.1")
        await sender.close()
        lookup, _ = in_turn(["127.0.0.2"])
        outcome = await post(make_sender(lookup=lookup), right.url(host="two.example.com"))
        assert (outcome.error_code, outcome.resolved_ip) == ("tls_error", "127.0.0.2")
        assert wrong.requests == []


@pytest.mark.hostile("Callback URLs, when they are called")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]"])
async def test_literal_hosts_are_vetted(make_sender: MakeSender, authority: Authority, host: str) -> None:
    sender = make_sender(AddressPolicy())
    async with receiver(well, authority.tls()) as receiving:
        outcome = await post(sender, receiving.url(host=host))
        assert outcome.error_code == ("invalid_url" if host == "localhost" else "address_blocked")
        assert outcome.resolved_ip is None
        assert receiving.connections == 0


@pytest.mark.hostile("Callback URLs, when they are called")
async def test_a_socket_to_a_refused_address_is_never_made(
    make_sender: MakeSender, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the resolver let everything pass, by a fault of its own."""
    lookup, _ = in_turn(["127.0.0.1"])
    sender = make_sender(AddressPolicy(), lookup=lookup)
    monkeypatch.setattr(sender._resolver, "_policy", AddressPolicy.parse("127.0.0.0/8"))  # pyright: ignore[reportPrivateUsage]
    async with receiver(well, authority.tls("open.example.com")) as receiving:
        assert (await post(sender, receiving.url(host="open.example.com"))).error_code == "address_blocked"
        assert receiving.connections == 0


async def test_dns_trouble_is_told_apart(make_sender: MakeSender) -> None:
    def lookup(host: str) -> Sequence[str]:
        raise {
            "gone.example.com": socket.gaierror(socket.EAI_NONAME, "x"),
            "ill.example.com": socket.gaierror(socket.EAI_AGAIN, "x"),
        }[host]

    sender = make_sender(lookup=lookup)
    for host, code in (("gone", "dns_nxdomain"), ("ill", "dns_error")):
        outcomes = await asyncio.gather(*(post(sender, f"https://{host}.example.com/") for _ in range(20)))
        assert {outcome.error_code for outcome in outcomes} == {code}


async def test_a_silent_name_server_is_a_dns_error_and_holds_one_thread(make_sender: MakeSender) -> None:
    released = threading.Event()
    asked: list[str] = []

    def lookup(host: str) -> Sequence[str]:
        asked.append(host)
        released.wait(5)
        return ()

    sender = make_sender(connect_timeout_seconds=0.2, lookup=lookup)
    outcomes = await asyncio.gather(*(post(sender, "https://slow.example.com/") for _ in range(100)))
    assert {outcome.error_code for outcome in outcomes} == {"dns_error"}
    assert len(asked) == 1
    released.set()


async def test_a_burst_to_one_name_is_one_look_up(make_sender: MakeSender, authority: Authority) -> None:
    lookup, asked = in_turn(["127.0.0.1"])
    sender = make_sender(lookup=lookup)
    async with receiver(well, authority.tls("burst.example.com")) as receiving:
        url = receiving.url(host="burst.example.com")
        outcomes = await asyncio.gather(*(post(sender, url) for _ in range(50)))
    assert {outcome.error_code for outcome in outcomes} == {None}
    assert len(asked) == 1
