"""Requests of the sender, and outcomes of regular responses."""

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from hooksaga.adapters.http_sender import HttpSender, OutgoingRequest, SendOutcome
from hooksaga.core.address_policy import AddressPolicy
from tests.delivery.hostile_receiver import Authority, Exchange, Receiver, raw, receiver, well

pytestmark = pytest.mark.timeout(10)

LOOPBACK = AddressPolicy.parse("127.0.0.0/8")
HEADERS = {
    "content-type": "application/json",
    "user-agent": "hooksaga/test",
    "webhook-id": "evt_1",
    "X-Mixed-Case": "caf\u00e9 \tx",
}
OK = b"HTTP/1.1 200 OK\r\n"


async def post(sender: HttpSender, url: str, body: bytes = b"{}", seconds: float = 3) -> SendOutcome:
    return await sender.send(OutgoingRequest(url, HEADERS, body, seconds))


async def answered_with(sender: HttpSender, authority: Authority, answer: bytes) -> SendOutcome:
    async with receiver(raw(answer), authority.tls()) as receiving:
        return await post(sender, receiving.url())


async def test_the_request_holds_what_was_asked_for_and_no_more(
    sender: HttpSender, authority: Authority
) -> None:
    body = b'{ "a":1.0,\t"a":2 }\n'
    async with receiver(well, authority.tls()) as receiving:
        outcome = await post(sender, receiving.url("/hook?a=b"), body)
    request = receiving.requests[0]
    assert outcome.error_code is None
    assert request.body == body
    assert request.target == "/hook?a=b"
    sent = {name.lower(): value.encode("latin-1").decode("utf-8") for name, value in request.headers}
    assert sent == {
        "host": f"127.0.0.1:{receiving.port}",
        "content-length": str(len(body)),
        "content-type": "application/json",
        "user-agent": "hooksaga/test",
        "webhook-id": "evt_1",
        "x-mixed-case": "caf\u00e9 \tx",
    }
    assert len(sent) == len(request.headers)


PATHS = [
    *(
        "/",
        "/%E2%9C%93/%2F%2e%2e",
        "//double//slash",
        "/a/../b/./c",
        "/hook;v=1,2",
        "/~user/@me/$x!*'()",
        "/%zz%",
    ),
    *("/?", "/?a=%20+&b&&c=%C3%A9", '/{a}|^`"<>?{}', "/x?y?z//", "/x?next=https://127.0.0.1/"),
]


@pytest.mark.parametrize("path", PATHS)
async def test_the_target_on_the_wire_is_the_stored_url(
    sender: HttpSender, authority: Authority, path: str
) -> None:
    async with receiver(well, authority.tls()) as receiving:
        await post(sender, receiving.url(path))
    assert receiving.requests[0].target == ("/" if path == "/?" else path)


async def test_tls_names_the_host_and_offers_http_1_only(sender: HttpSender, authority: Authority) -> None:
    tls = authority.tls("dead.localhost")
    tls.set_alpn_protocols(["h2", "http/1.1"])
    names: list[str | None] = []
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    async with receiver(well, tls) as receiving:
        outcome = await post(sender, receiving.url(host="dead.localhost"))
        chosen = receiving.exchanges[0].writer.get_extra_info("ssl_object").selected_alpn_protocol()
    assert outcome.error_code is None
    assert names == ["dead.localhost"]
    assert chosen == "http/1.1"
    assert receiving.requests[0].header("host") == f"dead.localhost:{receiving.port}"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 205, 206, 207, 226, 299])
async def test_2xx_is_success(sender: HttpSender, authority: Authority, status: int) -> None:
    outcome = await answered_with(
        sender, authority, f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert (outcome.response_status, outcome.error_code) == (status, None)


@pytest.mark.parametrize(
    "status",
    [
        300,
        301,
        302,
        303,
        304,
        307,
        308,
        399,
        400,
        401,
        404,
        408,
        410,
        413,
        425,
        429,
        499,
        500,
        503,
        599,
        600,
        999,
    ],
)
async def test_every_other_status_is_failure(sender: HttpSender, authority: Authority, status: int) -> None:
    outcome = await answered_with(
        sender, authority, f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert (outcome.response_status, outcome.error_code) == (status, f"http_{status}")


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", ["https://127.0.0.1:{port}/inside", "//127.0.0.1:{port}/inside", "/inside"]
)
async def test_redirects_are_not_followed(
    sender: HttpSender, authority: Authority, status: int, location: str
) -> None:
    async def redirect(exchange: Exchange) -> None:
        await exchange.answer(status, b"", "Location: " + location.format(port=receiving.port))

    async with receiver(redirect, authority.tls()) as receiving:
        outcome = await post(sender, receiving.url())
        assert outcome.error_code == f"http_{status}"
        assert (receiving.connections, len(receiving.requests)) == (1, 1)


async def test_connections_are_kept(sender: HttpSender, authority: Authority) -> None:
    async with receiver(well, authority.tls()) as receiving:
        for _ in range(5):
            assert (await post(sender, receiving.url())).response_body == "ok"
        assert (receiving.connections, len(receiving.requests)) == (1, 5)


@pytest.mark.hostile("Receivers")
async def test_no_cookie_comes_back(sender: HttpSender, authority: Authority) -> None:
    async def sets_cookie(exchange: Exchange) -> None:
        await exchange.answer(200, b"", "Set-Cookie: s=1; Path=/", "Set-Cookie: t=\xff\x01;;=;")

    async with receiver(sets_cookie, authority.tls()) as receiving:
        for _ in range(2):
            assert (await post(sender, receiving.url())).error_code is None
    assert [request.header("cookie") for request in receiving.requests] == [None, None]


@pytest.mark.parametrize(
    ("body", "kept", "truncated"),
    [
        (b"", "", False),
        (b"a" * 16384, "a" * 16384, False),
        (b"a" * 16385, "a" * 16384, True),
        (b"a" * 16383 + "\u20ac".encode() + b"b", "a" * 16383, True),
        (b"a\0b\xff\r\n\x1b", "ab\ufffd\r\n\x1b", False),
        (b"a" * 1_000_000, "a" * 16384, True),
    ],
    ids=["empty", "limit", "limit+1", "split character", "odd bytes", "1 MB"],
)
@pytest.mark.parametrize("status", [200, 500])
async def test_16_kib_of_the_body_are_kept(
    sender: HttpSender, authority: Authority, status: int, body: bytes, kept: str, truncated: bool
) -> None:
    answer = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    outcome = await answered_with(sender, authority, answer)
    assert outcome.response_status == status
    assert outcome.response_body == kept
    assert outcome.response_truncated is truncated


@pytest.mark.hostile("Receivers")
@pytest.mark.parametrize(
    "body",
    [
        b"plain",
        gzip.compress(b"a" * 50_000_000),
        gzip.compress(b"text")[:10],
        gzip.compress(b"text") + b"rubbish",
    ],
    ids=["not compressed", "bomb", "cut", "rubbish after"],
)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "unheard-of"])
async def test_nothing_is_decompressed(
    sender: HttpSender, authority: Authority, coding: str, body: bytes
) -> None:
    head = f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    outcome = await answered_with(sender, authority, OK + head + body)
    assert outcome.error_code is None
    assert outcome.response_body == body[:16384].decode("utf-8", "replace").replace("\0", "")


@pytest.mark.parametrize("status", [200, 429, 503])
async def test_retry_after_is_read(sender: HttpSender, authority: Authority, status: int) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    for value, low, high in (("120", 120, 120), (date, 95, 100), ("99999", 3600, 3600)):
        answer = f"HTTP/1.1 {status} X\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode()
        outcome = await answered_with(sender, authority, answer)
        assert outcome.retry_after_seconds is not None
        assert low <= outcome.retry_after_seconds <= high


@pytest.mark.parametrize(
    "lines", [b"", b"Retry-After: -1\r\n", b"Retry-After: soon\r\n", b"Retry-After: \xff\r\n"]
)
async def test_no_retry_after(sender: HttpSender, authority: Authority, lines: bytes) -> None:
    outcome = await answered_with(
        sender, authority, b"HTTP/1.1 503 X\r\n" + lines + b"Content-Length: 0\r\n\r\n"
    )
    assert (outcome.error_code, outcome.retry_after_seconds) == ("http_503", None)


async def test_the_first_of_two_retry_after_counts(sender: HttpSender, authority: Authority) -> None:
    lines = b"Retry-After: 10\r\nRetry-After: 20\r\nContent-Length: 0\r\n\r\n"
    assert (await answered_with(sender, authority, b"HTTP/1.1 503 X\r\n" + lines)).retry_after_seconds == 10


async def test_the_headers_of_the_answer_are_kept(sender: HttpSender, authority: Authority) -> None:
    """Of the last answer only, whatever came before it, and without trailers."""
    interim = b"HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\n"
    lines = b"X-Request-Id: 7\r\nSet-Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Late: 1\r\n\r\n"
    outcome = await answered_with(sender, authority, interim + b"HTTP/1.1 503 X\r\n" + lines)
    assert outcome.response_headers == "x-request-id: 7\nset-cookie: ***\ntransfer-encoding: chunked"


async def test_the_outcome_names_the_peer_and_the_time(sender: HttpSender, authority: Authority) -> None:
    async def later(exchange: Exchange) -> None:
        await asyncio.sleep(0.1)
        await exchange.answer()

    async with receiver(later, authority.tls(), host="127.0.0.9") as receiving:
        for _ in range(2):  # once over a new connection, once over the kept one
            outcome = await post(sender, receiving.url(host="127.0.0.9"))
            assert outcome.resolved_ip == "127.0.0.9"
            assert 100 <= outcome.duration_ms < 2500
    assert receiving.connections == 1


async def test_many_at_once_to_many_receivers(sender: HttpSender, authority: Authority) -> None:
    async def echo(exchange: Exchange) -> None:
        await exchange.answer(200, exchange.request.body)

    async def check(receiving: Receiver, number: int) -> None:
        body = f"{receiving.port}:{number}".encode()
        assert (await post(sender, receiving.url(), body)).response_body == body.decode()

    async with receiver(echo, authority.tls()) as one, receiver(echo, authority.tls()) as two:
        await asyncio.gather(*(check(receiving, number) for number in range(100) for receiving in (one, two)))


async def test_nothing_but_the_caller_bounds_how_many_are_in_flight(
    sender: HttpSender, authority: Authority
) -> None:
    all_here = asyncio.Event()

    async def wait_for_all(exchange: Exchange) -> None:
        if len(receiving.requests) == 150:
            all_here.set()
        await all_here.wait()
        await exchange.answer()

    async with receiver(wait_for_all, authority.tls()) as receiving:
        outcomes = await asyncio.gather(*(post(sender, receiving.url(), seconds=6) for _ in range(150)))
    assert {outcome.error_code for outcome in outcomes} == {None}
